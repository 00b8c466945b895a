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
    quick: ["2", "4"]                 # settings of the quick form
    methods: {surgical: [fedbn+], vanilla: [fedavg, fedbn+]}   # method: strategies
    seeds: 3
    tests: [nih, mimic]               # the test split, or all images where no site trains on it
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cxr_study.common.yaml_files import Keys, read_keys
from cxr_study.jobs import job_templates
from cxr_study.jobs.methods import SOLO_STRATEGIES, TITLES, Row
from cxr_study.studies.plan import shipped as shipped_files
from cxr_study.studies.plan.data_file import DATA_SETS
from cxr_study.studies.plan.setting import Setting, read_setting
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

    def rows_of(self, setting: Setting) -> tuple[Row, ...]:
        """The ways to train that a setting has: "complete" only where it cuts a data set."""
        return tuple(row for row in self.rows if row.method != "complete" or setting.cut)


def shipped() -> tuple[str, ...]:
    """Names of the studies that come with the package."""
    return shipped_files.names("published")


def path_of(source: str | Path) -> Path:
    """Absolute path of a study file.

    Args:
        source: Path of the file, or the name of a shipped one.

    Raises:
        StudyFileError: It is neither.
    """
    return shipped_files.find(source, "published", "study", StudyFileError).absolute()


def read_study(source: str | Path) -> Study:
    """Read and check a study file.

    Args:
        source: Path of the file, or the name of a shipped one.

    Raises:
        StudyFileError: The file does not exist or is not YAML, or a key is missing, unknown or not
            what it should be; names the file and the key.
    """
    keys = read_keys(path_of(source), "study file", StudyFileError)
    keys.check(_KEYS, _KEYS)
    settings = _settings(keys)
    return Study(
        name=keys.path.stem,
        title=keys.text("title"),
        source=keys.text("source"),
        factor=keys.text("factor"),
        settings=settings,
        quick=_quick(keys, settings),
        rows=_rows(keys, settings),
        seeds=keys.number("seeds", 1),
        tests=keys.texts("tests", tuple(DATA_SETS)),
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
    return tuple(
        Row(name, strategy)
        for name in methods.values
        for strategy in methods.texts(
            name, STRATEGIES if name in job_templates.METHODS else tuple(SOLO_STRATEGIES)
        )
    )
