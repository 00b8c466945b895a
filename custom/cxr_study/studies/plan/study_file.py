"""The study file: which scenarios, methods, strategies and seeds a study consists of.

A YAML file; its name is the study's:

    title: Number of sites
    source: ML4H 2024, Figures 6 (a) and 7
    factor: sites                     # what varies; names axes and tables
    scenarios:
      - {name: "2", cut: nih, sites: 2}                # one data set, cut into sites
      - {name: "4", cut: nih, sites: 4, shared: 8}     # with so many classes at every site
      - {name: "1/8", cut: nih, sites: 2, share: 1/8}  # with so much of the data set at each
      - {name: "20", sites: [nih, chexpert]}           # each data set a site
      - {name: "7", sites: [nih, chexpert], classes: shared}   # with the classes of both alone
      - {name: "all", sites: all, settings: {patience: 4}, model: last, methods: [surgical]}
    quick: ["2", "4"]                 # scenarios of the quick form
    methods: {surgical: [fedbn+], vanilla: [fedavg, fedbn+]}   # method: strategies
    seeds: 3
    tests: [nih, mimic]               # the test split, or all images where no site trains on it

With `sites: all` the sites are those of the data file, the same in every scenario, and tested is on
their own test splits: there is no key `tests`. Of the phantom they are nih and chexpert, with
patients of their own for each seed. `settings` win over the data file's, `model: last` tests the
last model and not the best, and `methods` are those that the scenario has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cxr_study.common.spelling import nearest
from cxr_study.common.yaml_files import Keys, read_keys
from cxr_study.jobs import job_templates
from cxr_study.jobs.methods import HEAD_WEIGHTED, SOLO_STRATEGIES, TITLES, Row
from cxr_study.studies.plan import shipped_files as shipped_files
from cxr_study.studies.plan.data_file import DATA_SETS, StudyData
from cxr_study.studies.plan.scenario import Scenario, read_scenario
from surgical_aggregation.aggregation.strategy import STRATEGIES

_KEYS = ("title", "source", "factor", "scenarios", "quick", "methods", "seeds", "tests")


class StudyFileError(ValueError):
    """A study file does not say what it should."""


@dataclass(frozen=True)
class Study:
    """What a study file says.

    Attributes:
        name: Of the file.
        title: For headings.
        source: Where it was published.
        factor: What varies from scenario to scenario, for axes and tables.
        scenarios: In the file's order.
        quick: Names of the scenarios of the quick form.
        rows: Ways to train, in the file's order; see `rows_of`.
        seeds: How many: 0, 1, ...
        tests: Data sets that the models are tested on.
    """

    name: str
    title: str
    source: str
    factor: str
    scenarios: tuple[Scenario, ...]
    quick: tuple[str, ...]
    rows: tuple[Row, ...]
    seeds: int
    tests: tuple[str, ...]

    @property
    def given(self) -> bool:
        """Whether the data file says which sites it has."""
        return any(scenario.given for scenario in self.scenarios)

    def rows_of(self, scenario: Scenario) -> tuple[Row, ...]:
        """The ways to train that a scenario has: "complete" only where it cuts a data set."""
        return tuple(
            row
            for row in self.rows
            if (row.method != "complete" or scenario.cut)
            and row.method in (scenario.methods or (row.method,))
        )

    def on(self, data: StudyData) -> Study:
        """The study with the data file's sites, where it leaves them to that.

        Raises:
            StudyFileError: These are fewer than two.
        """
        if not self.given:
            return self
        if len(data.sites) < 2:
            raise StudyFileError(
                f"study {self.name} trains on all sites of the data file and needs two or more; "
                f"{data.path} has {', '.join(data.sites)}. Add another one there."
            )
        scenarios = tuple(replace(scenario, sites=data.sites) for scenario in self.scenarios)
        return replace(self, scenarios=scenarios, tests=data.sites)


def shipped() -> tuple[str, ...]:
    """Names of the studies that come with the package."""
    return shipped_files.names("study_files")


def path_of(source: str | Path) -> Path:
    """Absolute path of a study file.

    Args:
        source: Path of the file, or the name of a shipped one.

    Raises:
        StudyFileError: It is neither.
    """
    return shipped_files.find(source, "study_files", "study", StudyFileError).absolute()


def read_study(source: str | Path) -> Study:
    """Read and check a study file.

    Args:
        source: Path of the file, or the name of a shipped one.

    Raises:
        StudyFileError: The file does not exist or is not YAML, or a key is missing, unknown or not
            what it should be; names the file and the key.
    """
    keys = read_keys(path_of(source), "study file", StudyFileError)
    keys.check(_KEYS, _KEYS[:-1])
    scenarios = _scenarios(keys)
    given = any(scenario.given for scenario in scenarios)
    if given and not all(scenario.given for scenario in scenarios):
        raise keys.need("scenarios", "'sites: all' in all scenarios or in none")
    if given:
        keys.refuse(("tests",), "where the sites are those of the data file: they are tested on")
    else:
        keys.check(_KEYS, _KEYS)
    return Study(
        name=keys.path.stem,
        title=keys.text("title"),
        source=keys.text("source"),
        factor=keys.text("factor"),
        scenarios=scenarios,
        quick=_quick(keys, scenarios),
        rows=_rows(keys, scenarios),
        seeds=keys.number("seeds", 1),
        tests=() if given else keys.texts("tests", tuple(DATA_SETS)),
    )


def _scenarios(keys: Keys) -> tuple[Scenario, ...]:
    entries = keys.values["scenarios"]
    if not isinstance(entries, list) or not entries:
        raise keys.need("scenarios", "a list with one scenario or more")
    scenarios = []
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise keys.need(
                "scenarios", f"keys such as name and sites for scenario {number}", entry
            )
        scenarios.append(read_scenario(Keys(keys.path, entry, keys.error, f"scenario {number}, ")))
    names = [scenario.name for scenario in scenarios]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise keys.need("scenarios", "another name for each scenario", twice[0])
    return tuple(scenarios)


def _quick(keys: Keys, scenarios: tuple[Scenario, ...]) -> tuple[str, ...]:
    entries = keys.values["quick"]
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, str):
            raise keys.need("quick", "names of scenarios (in quotes where they are numbers)", entry)
    return keys.texts("quick", [scenario.name for scenario in scenarios])


def _rows(keys: Keys, scenarios: tuple[Scenario, ...]) -> tuple[Row, ...]:
    methods = keys.below("methods", "lines 'method: [strategies]'")
    methods.check(tuple(TITLES), ())
    if not methods.values:
        raise keys.need("methods", "one method or more")
    if methods.has("complete") and not any(scenario.cut for scenario in scenarios):
        raise keys.error(
            f"{keys.path}: {methods.place}key 'complete' needs a scenario that cuts a data set; no "
            "scenario has the key 'cut'."
        )
    for number, scenario in enumerate(scenarios, start=1):
        if lacking := [name for name in scenario.methods if not methods.has(name)]:
            raise keys.error(
                f"{keys.path}: scenario {number}, key 'methods' needs methods of the study; "
                f"{nearest(lacking[0], tuple(methods.values))}, got {lacking[0]!r}."
            )
    strategies = dict.fromkeys(TITLES, tuple(SOLO_STRATEGIES))
    strategies |= dict.fromkeys(job_templates.METHODS, STRATEGIES)
    strategies["surgical"] = (*STRATEGIES, *HEAD_WEIGHTED)
    return tuple(
        Row(name, strategy)
        for name in methods.values
        for strategy in methods.texts(name, strategies[name])
    )
