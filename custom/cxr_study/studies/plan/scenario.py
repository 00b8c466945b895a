"""A scenario of a study: the sites of some of its trainings, as the study file says."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cxr_study.common.yaml_files import Keys
from cxr_study.data.labels.class_sets import ClassSetError, class_sets_of, published_sites
from cxr_study.data.readers import DATASETS
from cxr_study.jobs.methods import TITLES
from cxr_study.studies.plan.data_file import DATA_SETS

ALL_SITES = "all"
"""In place of sites: those of the data file."""

CLASSES = ("all", "shared")
"""Which classes sites that are data sets have: all of their own, or those that every one has."""

MODELS = ("best", "last")
"""Which model of a training is tested: the best by validation loss, or that of the last round."""

_KEYS = ("name", "cut", "sites", "shared", "share", "classes", "settings", "model", "methods")


@dataclass(frozen=True)
class Scenario:
    """The sites of some of a study's trainings.

    Attributes:
        name: For people, on axes and in tables.
        cut: Data set that is cut into sites; None where data sets are sites.
        sites: Number of sites it is cut into, or the data sets; none yet where the data file says
            which, see `study_file.Study.on`.
        shared: Number of classes at every site; None: as published, or nothing is cut. See
            `class_sets.class_sets_of`.
        share: Of the data set's training patients at each site; None for all of them together.
        classes: One of `CLASSES`; "all" where a data set is cut.
        given: Whether its sites are all those of the data file.
        settings: (setting, value) of its trainings; they win over the data file's.
        last: Whether the last model of a training is tested, not the best by validation loss.
        methods: Those that are trained in it; none: all of the study.
    """

    name: str
    cut: str | None
    sites: int | tuple[str, ...]
    shared: int | None = None
    share: Fraction | None = None
    classes: str = "all"
    given: bool = False
    settings: tuple[tuple[str, Any], ...] = ()
    last: bool = False
    methods: tuple[str, ...] = ()

    @property
    def used(self) -> Fraction:
        """Share of a site's own training patients that is used, for `partition.write_sites`."""
        if self.share is None or not isinstance(self.sites, int):
            return Fraction(1)
        return self.share * self.sites

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Names of those that its sites train on."""
        return self.sites if isinstance(self.sites, tuple) else (str(self.cut),)


def read_scenario(keys: Keys) -> Scenario:
    """Read and check a scenario.

    Args:
        keys: Of the scenario, in a study file.

    Raises:
        ValueError: `keys.error`: a key is missing, unknown or not what it should be, or the data
            set has too few classes for such sites.
    """
    keys.check(_KEYS, ("name", "sites"))
    name, how = keys.text("name"), _how(keys)
    if not keys.has("cut"):
        keys.refuse(("shared", "share"), "where no data set is cut")
        classes = keys.choice("classes", CLASSES) if keys.has("classes") else "all"
        if keys.values["sites"] == ALL_SITES:
            return Scenario(name, None, (), classes=classes, given=True, **how)
        sites = keys.texts("sites", tuple(DATA_SETS))
        if len(sites) < 2:
            raise keys.need("sites", "two data sets or more, or a number beside 'cut', or 'all'")
        return Scenario(name, None, sites, classes=classes, **how)
    keys.refuse(("classes",), "where a data set is cut; the number of shared ones is 'shared'")
    cut, number = keys.choice("cut", tuple(DATA_SETS)), keys.number("sites", 2)
    shared = keys.number("shared", 0) if keys.has("shared") else None
    if shared is None and (cut != "nih" or number not in published_sites()):
        raise keys.error(
            f"{keys.path}: {keys.place}needs key 'shared': no class sets are published for "
            f"{number} sites of {cut}."
        )
    known = DATASETS[DATA_SETS[cut]].classes
    if shared is not None and known is not None:  # None: the file of the labels decides
        try:
            class_sets_of(known, number, shared=shared, seed=0)
        except ClassSetError as error:
            raise keys.error(f"{keys.path}: {keys.place}{error}") from error
    share = _share(keys, number) if keys.has("share") else None
    return Scenario(name, cut, number, shared, share, **how)


def _how(keys: Keys) -> dict[str, Any]:
    """What a scenario says of its trainings, its sites apart."""
    how: dict[str, Any] = {}
    if keys.has("settings"):
        how["settings"] = tuple(keys.below("settings", "lines 'setting: value'").values.items())
    if keys.has("model"):
        how["last"] = keys.choice("model", MODELS) == MODELS[1]
    if keys.has("methods"):
        how["methods"] = keys.texts("methods", tuple(TITLES))
    return how


def _share(keys: Keys, sites: int) -> Fraction:
    try:
        share = Fraction(str(keys.values["share"]))
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share * sites <= 1:
        raise keys.need("share", f"a share above 0, at most 1/{sites} at each of {sites} sites")
    return share
