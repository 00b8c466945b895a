"""The study file: which settings, methods, strategies and seeds a study consists of.

A YAML file; its name is the study's:

    title: Number of sites
    source: ML4H 2024, Figures 6 (a) and 7
    factor: sites                     # what varies; names axes and tables
    settings:
      - {name: "2", cut: nih, sites: 2}                # one data set, cut into sites
      - {name: "4", cut: nih, sites: 4, shared: 8}     # with so many classes at every site
      - {name: "1/8", cut: nih, sites: 2, share: 1/8}  # with so much of the data set at each
      - {name: "20", sites: [nih, chexpert]}           # each data set a site
      - {name: "7", sites: [nih, chexpert], classes: shared}   # with the classes of both alone
      - {name: "all", sites: all, knobs: {patience: 4}, model: last, methods: [surgical]}
    quick: ["2", "4"]                 # settings of the quick form
    methods: {surgical: [fedbn+], vanilla: [fedavg, fedbn+]}   # method: strategies
    seeds: 3
    tests: [nih, mimic]               # the test split, or all images where no site trains on it

With `sites: all` the sites are those of the data file, the same in every setting, and tested is on
their own test splits: there is no key `tests`. Of the phantom they are nih and chexpert, with
patients of their own for each seed. `knobs` win over the data file's, `model: last` tests the last
model and not the best, and `methods` are those that the setting has.
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
from cxr_study.studies.plan.scenario import Setting, read_setting
from surgical_aggregation.aggregation.strategy import STRATEGIES

_KEYS = ("title", "source", "factor", "settings", "quick", "methods", "seeds", "tests")


class StudyFileError(ValueError):
    """A study file does not say what it should."""


@dataclass(frozen=True)
class Study:
    """What a study file says.

    Attributes:
        name: Of the file.
        title: For headings.
        source: Where it was published.
        factor: What varies from setting to setting, for axes and tables.
        settings: In the file's order.
        quick: Names of the settings of the quick form.
        rows: Ways to train, in the file's order; see `rows_of`.
        seeds: How many: 0, 1, ...
        tests: Data sets that the models are tested on.
    """

    name: str
    title: str
    source: str
    factor: str
    settings: tuple[Setting, ...]
    quick: tuple[str, ...]
    rows: tuple[Row, ...]
    seeds: int
    tests: tuple[str, ...]

    @property
    def given(self) -> bool:
        """Whether the data file says which sites it has."""
        return any(setting.given for setting in self.settings)

    def rows_of(self, setting: Setting) -> tuple[Row, ...]:
        """The ways to train that a setting has: "complete" only where it cuts a data set."""
        return tuple(
            row
            for row in self.rows
            if (row.method != "complete" or setting.cut)
            and row.method in (setting.methods or (row.method,))
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
        settings = tuple(replace(setting, sites=data.sites) for setting in self.settings)
        return replace(self, settings=settings, tests=data.sites)


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
    settings = _settings(keys)
    given = any(setting.given for setting in settings)
    if given and not all(setting.given for setting in settings):
        raise keys.need("settings", "'sites: all' in all settings or in none")
    if given:
        keys.refuse(("tests",), "where the sites are those of the data file: they are tested on")
    else:
        keys.check(_KEYS, _KEYS)
    return Study(
        name=keys.path.stem,
        title=keys.text("title"),
        source=keys.text("source"),
        factor=keys.text("factor"),
        settings=settings,
        quick=_quick(keys, settings),
        rows=_rows(keys, settings),
        seeds=keys.number("seeds", 1),
        tests=() if given else keys.texts("tests", tuple(DATA_SETS)),
    )


def _settings(keys: Keys) -> tuple[Setting, ...]:
    entries = keys.values["settings"]
    if not isinstance(entries, list) or not entries:
        raise keys.need("settings", "a list with one setting or more")
    settings = []
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise keys.need("settings", f"keys such as name and sites for setting {number}", entry)
        settings.append(read_setting(Keys(keys.path, entry, keys.error, f"setting {number}, ")))
    names = [setting.name for setting in settings]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise keys.need("settings", "another name for each setting", twice[0])
    return tuple(settings)


def _quick(keys: Keys, settings: tuple[Setting, ...]) -> tuple[str, ...]:
    entries = keys.values["quick"]
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, str):
            raise keys.need("quick", "names of settings (in quotes where they are numbers)", entry)
    return keys.texts("quick", [setting.name for setting in settings])


def _rows(keys: Keys, settings: tuple[Setting, ...]) -> tuple[Row, ...]:
    methods = keys.below("methods", "lines 'method: [strategies]'")
    methods.check(tuple(TITLES), ())
    if not methods.values:
        raise keys.need("methods", "one method or more")
    if methods.has("complete") and not any(setting.cut for setting in settings):
        raise keys.error(
            f"{keys.path}: {methods.place}key 'complete' needs a setting that cuts a data set; no "
            "setting has the key 'cut'."
        )
    for number, setting in enumerate(settings, start=1):
        if lacking := [name for name in setting.methods if not methods.has(name)]:
            raise keys.error(
                f"{keys.path}: setting {number}, key 'methods' needs methods of the study; "
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
