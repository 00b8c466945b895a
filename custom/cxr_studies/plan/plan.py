"""The runs of a study: every scenario with every method, strategy and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from cxr_deployment.poc_system import PocProject
from cxr_studies.partition.class_sets import class_sets_of
from cxr_studies.plan import run_settings
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import SITES, TEST_SETS, Run
from cxr_studies.plan.site_files import DataSet, ScenarioFiles, given_sites
from cxr_studies.plan.study_file import Scenario, Selection, Study, trainings
from cxr_study.common import offered_data
from cxr_study.common.errors import InputError
from surgical_aggregation.checkpoints.checkpoint import digest, load

FORMAT = 2
"""Version of what a run's key covers; raise it when the same settings no longer give the same run.
"""

_PACKAGES = ("surgical-aggregation", "nvflare", "tensorflow", "keras", "numpy")


def check(
    study: Study, data: StudyData, selection: Selection, project: Path | None = None
) -> tuple[str, ...]:
    """Refuse a study that could not be run, before any data are read.

    Args:
        study: What is varied.
        data: On which data.
        selection: Of scenarios, methods and seeds.
        project: See `runs`.

    Returns:
        Names of the data sets that are needed, of those that the data file has.

    Raises:
        InputError: What is selected is unknown or nothing, a data set that sites train on or every
            one to test on is missing, or the project does not have the sites.
        ValueError: A setting, the network or the initial body is unusable.
    """
    selected = trainings(study, selection)
    scenarios = list({scenario.name: scenario for _, scenario, _ in selected}.values())
    rows = {row: study.settings_of(row) for _, _, row in selected}
    run_settings.check(data, scenarios, rows)
    sites = dict.fromkeys(chain.from_iterable(each.site_names for each in study.scenarios))
    run_settings.check_per_site(data, tuple(sites))
    known = () if project is None else PocProject.read(project).sites
    for scenario in scenarios if known else ():
        if not isinstance(scenario.sites, tuple) or not set(scenario.sites) <= set(known):
            raise InputError(
                f"{project} has the sites {', '.join(known)}; scenario {scenario.name!r} has "
                "others. Leave --poc out, or give another --project."
            )
    if study.given and data.own_splits:
        return ()
    trained = list(dict.fromkeys(name for scenario in scenarios for name in scenario.data_sets))
    tested = [name for name in study.tests if data.has(name)]
    lacking = [f"trains on {name}" for name in trained if not data.has(name)]
    if not tested:
        lacking.append(f"is tested on {' and '.join(study.tests)}")
    if lacking:
        raise InputError(
            f"study {study.name} {lacking[0]}; data file {data.path} has "
            f"{', '.join(data.sources)}. Add it to the key 'data'."
        )
    return tuple(dict.fromkeys([*trained, *tested]))


def runs(
    study: Study,
    data: StudyData,
    found: Mapping[str, DataSet],
    folder: Path,
    selection: Selection,
    project: Path | None = None,
) -> list[Run]:
    """All runs of a study, seed by seed; their site files are written.

    Args:
        study: What is varied.
        data: On which data; see `check`.
        found: Name -> data set, of those that are needed and perhaps more.
        folder: For site files and test sets.
        selection: Of scenarios, methods and seeds.
        project: FLARE's project file: federated runs are made in a POC. Default None: in FLARE's
            simulator.

    Returns:
        The runs; two may have the same key, for instance where a training does not depend on the
        scenario. Trainings whose sites share no class are left out.

    Raises:
        InputError: What is selected is unknown or nothing, or a data set cannot be cut so.
        ValueError: The initial body is unusable.
    """
    planner = _Planner(study, data, found, folder, project, study.given and data.own_splits)
    planned: list[Run] = []
    for seed, scenario, row in trainings(study, selection):
        try:
            planned += planner.run(scenario, row, seed)
        except InputError as error:
            raise InputError(f"study {study.name}, scenario {scenario.name!r}: {error}") from error
    if not planned:
        raise InputError(
            f"the selected part of study {study.name} ({selection}) needs a class that all sites "
            "label; there is none."
        )
    return planned


@dataclass
class _Planner:
    """Describes the runs, and writes the site files that they need; see `runs`.

    Attributes:
        study: What is varied.
        data: On which data.
        found: Name -> data set.
        folder: For site files and test sets.
        project: FLARE's project file, or None.
        given: Whether the sites are the data file's, with splits of their own.
    """

    study: Study
    data: StudyData
    found: Mapping[str, DataSet]
    folder: Path
    project: Path | None
    given: bool

    def __post_init__(self) -> None:
        self.given_by_seed: dict[int, dict[str, DataSet]] = {}
        self.files = ScenarioFiles(self.found, self.folder / SITES)
        self.initial_body = self.data.initial_body or offered_data.drawings()
        self.body_digest = digest(load(self.initial_body).variables)

    def run(self, scenario: Scenario, row: Row, seed: int) -> list[Run]:
        """The run of a scenario with a row and a seed; none where its sites share no class.

        `what` decides the run's key: everything that changes its result is in it, and nothing else.
        """
        labelled, folder = self._sites(scenario, row, seed)
        union = sorted(set(chain.from_iterable(labelled.values())))
        if not union:
            return []
        tests = {
            name: self._tested(name, scenario, labelled, seed, folder)
            for name in self.study.tests
            if self.given or name in self.found
        }
        # What would be tracked is in the run's record, and its folder is removed with the run's.
        given = {
            **self.data.settings,
            **scenario.settings,
            **self.study.settings_of(row),
            "seed": seed,
            "tracking": "none",
        }
        varied = scenario.settings.keys() | self.study.settings_of(row).keys()
        per_site = {
            site: own
            for site, values in self.data.per_site.items()
            if (own := {name: value for name, value in values.items() if name not in varied})
            and site in labelled
            and not row.pooled
        }
        of_all = row, tuple(labelled), union, self.data.preset
        settings = run_settings.all_settings(*of_all, given, per_site)
        if scenario.equal_steps and row.pooled:
            given["batch_size"] = settings["batch_size"] * scenario.number_of_sites
            settings = run_settings.all_settings(*of_all, given)
        project = self.project if row.federated else None
        what = {
            "format": FORMAT,
            "packages": {name: version(name) for name in _PACKAGES},
            "row": {"method": row.method, "strategy": row.job_strategy},
            "preset": self.data.preset,
            "given": given,
            "settings": settings,
            "network": run_settings.network(self.data),
            "sites": {site: list(classes) for site, classes in labelled.items()},
            "union": union,
            "site_files": folder.name,
            "tests": {name: path.name for name, path in tests.items()},
            "initial_body": self.body_digest,
            **({"poc": True} if project else {}),
            **({"per_site": per_site} if per_site else {}),
            **({"model": "last"} if scenario.model == "last" else {}),
        }
        where = {
            "site_files": str(folder.absolute()),
            "sites": list(labelled),
            "tests": {name: str(path.absolute() / f"{name}.yaml") for name, path in tests.items()},
            "test_sets": str((self.folder / TEST_SETS).absolute()),
            "initial_body": str(self.initial_body.absolute()),
            "project": None if project is None else str(project.absolute()),
            "given": self.given,
        }
        return [Run(scenario.name, row, seed, what, where)]

    def _sites(
        self, scenario: Scenario, row: Row, seed: int
    ) -> tuple[Mapping[str, Sequence[str]], Path]:
        """Site -> classes, and the folder of the site files."""
        if isinstance(scenario.sites, tuple):
            if self.given and seed not in self.given_by_seed:
                self.given_by_seed[seed] = given_sites(self.data, seed)
            found = self.given_by_seed[seed] if self.given else self.found
            labelled = {name: found[name].classes for name in scenario.sites}
            if scenario.classes == "shared":
                shared = set.intersection(*map(set, labelled.values()))
                labelled = dict.fromkeys(labelled, tuple(sorted(shared)))
            if self.given:
                folder = self.files.write_given(found, labelled, seed=seed, folds=self.data.folds)
                return labelled, folder
            return labelled, self.files.write_whole(labelled, seed=seed)
        name = str(scenario.cut)
        classes = self.found[name].classes
        if row.method == "complete":
            return {name: classes}, self.files.write_whole({name: classes}, seed=seed)
        sets = class_sets_of(classes, int(scenario.sites), shared=scenario.shared, seed=seed)
        folder = self.files.write_cut(
            name, sets, seed=seed, share=scenario.used_share, skew=scenario.skew
        )
        return dict(zip(scenario.site_names, sets, strict=True)), folder

    def _tested(
        self,
        name: str,
        scenario: Scenario,
        labelled: Mapping[str, Sequence[str]],
        seed: int,
        folder: Path,
    ) -> Path:
        """Folder of the site file whose test split a data set is tested on."""
        if self.given:
            return folder
        if name not in scenario.data_sets:
            return self.files.write_test_only(name)
        whole = {name: self.found[name].classes}
        sites = {site: labelled[site] for site in labelled if site in self.found}
        return self.files.write_whole(sites or whole, seed=seed)
