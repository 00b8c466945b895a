"""The runs of a study: every setting with every method, strategy and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cxr_study import job_folder, presets, row_job, solo_run
from cxr_study.class_sets import class_sets_of
from cxr_study.deployment.poc_project import PocProject
from cxr_study.embedded import embedded_initial_body
from cxr_study.initial_body import check_network
from cxr_study.rows import Row
from cxr_study.studies import solo
from cxr_study.studies.data_file import StudyData
from cxr_study.studies.data_sets import DataSet, data_sets
from cxr_study.studies.run import Run
from cxr_study.studies.run_folder import TEST_SETS
from cxr_study.studies.setting_files import SettingFiles
from cxr_study.studies.study_file import Setting, Study
from cxr_study.study_run import prepare
from cxr_study.vocabulary import nearest
from surgical_aggregation.checkpoint import digest, load

FORMAT = 1
"""Of runs; raise it when the same settings no longer give the same run."""

OWN_KNOBS = (
    "continues", "head_weighting", "initial_body", "min_clients", "report_counts", "seed", "sites",
    "strategy", "tracking", "union",
)  # fmt: skip
"""Knobs that a study sets itself."""

_PACKAGES = ("surgical-aggregation", "nvflare", "tensorflow", "keras", "numpy")


class StudyError(ValueError):
    """A study cannot be made as asked."""


@dataclass(frozen=True)
class Selection:
    """Which part of a study is wanted; None: all of it, as the study file says.

    Attributes:
        settings: Names.
        methods: Names.
        seeds: How many: 0, 1, ...
        quick: Only settings of the study's quick form.
    """

    settings: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: int | None = None
    quick: bool = False


def runs(
    study: Study,
    data: StudyData,
    folder: Path,
    selection: Selection,
    project: Path | None = None,
) -> list[Run]:
    """All runs of a study, seed by seed; their site files are written and their images decoded.

    Args:
        study: What is varied.
        data: On which data.
        folder: For site files and test sets.
        selection: Of settings, methods and seeds.
        project: FLARE's project file: federated runs are made in a POC. Default None: in FLARE's
            simulator.

    Raises:
        StudyError: A data set that sites train on is missing, what is selected is unknown, or the
            project does not have the sites.
        ValueError: The data, a knob or the initial body is unusable.
    """
    known = {setting.name: setting for setting in study.settings}
    wanted = _selected("setting", selection.settings, tuple(known))
    settings = [known[name] for name in wanted if name in study.quick or not selection.quick]
    methods = _selected("method", selection.methods, tuple(row.method for row in study.rows))
    trained = list(chain.from_iterable(map(_data_sets, settings)))
    found = data_sets(data, dict.fromkeys([*trained, *study.tests]), folder / "data")
    if missing := [name for name in trained if name not in found]:
        raise StudyError(
            f"study {study.name} trains on {missing[0]}; data file {data.name} has "
            f"{', '.join(data.sources)}. Add it to the key 'data'."
        )
    tests = tuple(name for name in study.tests if name in found)
    planner = _Planner(data, found, tests, folder, project)
    for setting in settings:
        _check_project(setting, project)
    planner.prepare()
    return [
        planner.run(setting, row, seed)
        for seed in range(selection.seeds or study.seeds)
        for setting in settings
        for row in study.rows_of(setting)
        if row.method in methods
    ]


def _selected(kind: str, wanted: tuple[str, ...] | None, known: tuple[str, ...]) -> list[str]:
    for name in wanted or ():
        if name not in known:
            raise StudyError(f"the study has no {kind} {name!r}; {nearest(name, known)}.")
    return [name for name in dict.fromkeys(known) if wanted is None or name in wanted]


def _check_project(setting: Setting, project: Path | None) -> None:
    """Refuse sites that a POC would not have."""
    if project is None:
        return
    known = PocProject.read(project).sites
    if not isinstance(setting.sites, tuple) or not set(setting.sites) <= set(known):
        raise StudyError(
            f"{project} has the sites {', '.join(known)}; setting {setting.name!r} has "
            "others. Leave --poc out, or give another --project."
        )


def _data_sets(setting: Setting) -> tuple[str, ...]:
    """Names of those that a setting's sites train on."""
    return setting.sites if isinstance(setting.sites, tuple) else (str(setting.cut),)


class _Planner:
    """Says what runs are, and writes the site files that they need.

    Args:
        data: On which data.
        found: Name -> data set.
        tests: Names of those to test on.
        folder: For site files and test sets.
        project: See `runs`.
    """

    def __init__(
        self,
        data: StudyData,
        found: Mapping[str, DataSet],
        tests: tuple[str, ...],
        folder: Path,
        project: Path | None,
    ):
        self.data = data
        self.found = found
        self.tests = tests
        self.folder = folder
        self.project = project if project is None else project.absolute()
        self.files = SettingFiles(found, folder / "sites")
        self.initial_body = data.initial_body or embedded_initial_body()
        self._body_digest = digest(load(self.initial_body).variables)

    def prepare(self) -> None:
        """Refuse knobs that no training could use, and decode the images of all data sets.

        Raises:
            StudyError: A knob is the study's own.
            ValueError: A knob, the network or an image is unusable.
        """
        if own := [name for name in self.data.knobs if name in OWN_KNOBS]:
            raise StudyError(
                f"a study sets the knob {own[0]!r} itself; leave it out of data file "
                f"{self.data.name}."
            )
        self._knobs(Row("surgical", "fedbn+"), ("site",), (), self.data.knobs)
        network = self._network()
        check_network(self.initial_body, backbone=network["backbone"], hidden=network["hidden"])
        for name in self.found:
            prepare(self.files.test_only(name), [name], network["image_size"])

    def run(self, setting: Setting, row: Row, seed: int) -> Run:
        """The run of a setting with a row and a seed."""
        held, folder = self._sites(setting, row, seed)
        union = sorted(set(chain.from_iterable(held.values())))
        tests = {name: self._tested(name, setting, held, seed) for name in self.tests}
        # What would be tracked is in the run's record; TensorBoard costs a run a tenth of its time.
        settings = {**self.data.knobs, "seed": seed, "tracking": "none"}
        project = self.project if row.federated else None
        what = {
            "format": FORMAT,
            "packages": {name: version(name) for name in _PACKAGES},
            "row": asdict(row),
            "preset": self.data.preset,
            "settings": settings,
            "knobs": self._knobs(row, tuple(held), union, settings),
            "network": self._network(),
            "sites": {site: list(classes) for site, classes in held.items()},
            "union": union,
            "site_files": folder.name,
            "tests": {name: path.parent.name for name, path in tests.items()},
            "initial_body": self._body_digest,
        }
        if project is not None:
            what["poc"] = True
        where = {
            "site_files": str(folder.absolute()),
            "sites": list(held),
            "tests": {name: str(path.absolute()) for name, path in tests.items()},
            "test_sets": str((self.folder / TEST_SETS).absolute()),
            "initial_body": str(self.initial_body.absolute()),
            "project": None if project is None else str(project),
        }
        return Run(setting.name, row, seed, what, where)

    def _sites(
        self, setting: Setting, row: Row, seed: int
    ) -> tuple[dict[str, tuple[str, ...]], Path]:
        """Site -> classes, and the folder of the site files."""
        if isinstance(setting.sites, tuple):
            held = {name: self.found[name].classes for name in setting.sites}
            if setting.classes == "shared":
                shared = set.intersection(*map(set, held.values()))
                held = dict.fromkeys(held, tuple(sorted(shared)))
            return held, self.files.wholes(held, seed=seed)
        name = str(setting.cut)
        classes = self.found[name].classes
        if row.method == "complete":
            return {name: classes}, self.files.wholes({name: classes}, seed=seed)
        sets = class_sets_of(classes, setting.sites, shared=setting.shared, seed=seed)
        folder = self.files.parts(name, sets, seed=seed, share=setting.used)
        return {f"{name}-{number}": each for number, each in enumerate(sets, start=1)}, folder

    def _tested(
        self, name: str, setting: Setting, held: Mapping[str, Sequence[str]], seed: int
    ) -> Path:
        """Site file whose test split a data set is tested on."""
        if name not in _data_sets(setting):
            return self.files.test_only(name) / f"{name}.yaml"
        classes = {site: held[site] for site in held if site in self.found}
        if not classes:
            classes = {name: self.found[name].classes}
        return self.files.wholes(classes, seed=seed) / f"{name}.yaml"

    def _network(self) -> dict[str, Any]:
        settings, _ = presets.apply(self.data.preset, self.data.knobs, {}, ())
        own = {name: value for name, value in settings.items() if name in solo_run.KNOBS}
        knobs = solo_run.knobs("individual", own)
        return {name: knobs[name] for name in ("backbone", "image_size", "hidden")}

    def _knobs(
        self, row: Row, sites: tuple[str, ...], union: Sequence[str], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Every knob of the training, those that nobody has set included."""
        if not row.federated:
            return solo.knobs(row, sites, union, self.data.preset, settings)
        with TemporaryDirectory() as temporary:
            job = Path(temporary) / "job"
            row_job.configure(
                row, job, sites=sites, union=union, settings=settings, preset=self.data.preset
            )
            return dict(job_folder.knobs(job))
