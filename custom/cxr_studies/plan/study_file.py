"""The study file: which scenarios, methods, strategies and seeds a study consists of.

A YAML file, named as the study; docs/how-to/run-studies.md has one with all keys.

With `sites: all` the sites are those of the data file, the same in every scenario, and models are
tested on their test splits: there is no key `tests`. The phantom's are nih and chexpert, with other
patients for each seed. A scenario's `settings` win over the data file's, `model: last` tests the
last model and not the best, and `methods` are those that the scenario has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    model_validator,
)

from cxr_studies.partition.class_sets import class_sets_of, published_sites
from cxr_studies.partition.skew import Skew, skew_of
from cxr_studies.plan import shipped_files
from cxr_studies.plan.data_file import DATA_SETS, StudyData
from cxr_studies.plan.row import SOLO_STRATEGIES, TITLES, Row
from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest
from cxr_study.common.wording import counted
from cxr_study.common.yaml_files import (
    EachOnce,
    FileModel,
    NeedError,
    Text,
    choice_validator,
    read_model,
)
from cxr_study.data.readers import DATASETS
from surgical_aggregation.aggregation.batch_norm_strategy import find
from surgical_aggregation.extras import PartError

ALL_SITES = "all"
"""Value of the key `sites`: those of the data file."""

_DataSets = Annotated[
    tuple[Annotated[Text, choice_validator(DATA_SETS)], ...], Field(min_length=1), EachOnce
]
_Methods = Annotated[
    tuple[Annotated[Text, choice_validator(TITLES)], ...], Field(min_length=1), EachOnce
]
_Alpha = Annotated[float, Field(strict=True)]
_Strategies = Annotated[tuple[Text, ...], Field(min_length=1), EachOnce]


def _sites(value: object, info: ValidationInfo) -> int | str | tuple[str, ...]:
    """The key `sites`: a number with `cut`, else names of data sets or `ALL_SITES`."""
    if info.data.get("cut") is not None:
        if type(value) is not int or value < 2:
            raise NeedError("a whole number of 2 or more")
        return value
    if value == ALL_SITES:
        return ALL_SITES
    if not isinstance(value, list) or len(value) < 2:
        raise NeedError("two data sets or more, or with 'cut' a number, or 'all'")
    return TypeAdapter(_DataSets).validate_python(value)


def _share(value: object, info: ValidationInfo) -> Fraction:
    """The key `share`, as a fraction of the data set's training patients at each site."""
    sites = info.data.get("sites")
    try:
        share = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if isinstance(sites, int) and not 0 < share * sites <= 1:
        raise NeedError(f"a share above 0, at most 1/{sites} at each of {sites} sites")
    return share


class Scenario(FileModel):
    """The sites of some of a study's trainings.

    Attributes:
        name: For tables and figures.
        cut: Data set that is cut into sites; None where data sets are sites.
        sites: Number of sites it is cut into, or the data sets; `ALL_SITES` until
            `Study.with_sites_of` has put those of the data file in its place.
        shared: Number of classes at every site; None: as published, or nothing is cut. See
            `class_sets.class_sets_of`.
        share: Of the data set's training patients at each site; None for all of them together.
        quantity_skew: Alpha of unequal shares of the patients, see `skew.Skew`; None: equal ones.
        label_skew: Alpha of unequal shares of the patients of each rarest finding, likewise.
        classes: Which classes sites that are data sets have: all of their own, or those that every
            one has.
        settings: Setting -> value, of its trainings; they win over the data file's.
        model: Which model of a training is tested: the best by validation loss, or that of the
            last round.
        methods: Those that are trained in it; none: all of the study.
        equal_steps: Whether a training on data in one place takes as many optimizer steps per pass
            as each site does: its batches are larger by the number of sites.
    """

    name: Text
    cut: Annotated[str, choice_validator(DATA_SETS)] | None = None
    sites: Annotated[int | str | tuple[str, ...], PlainValidator(_sites)]
    shared: Annotated[int, Field(strict=True, ge=0)] | None = None
    share: Annotated[Fraction, PlainValidator(_share)] | None = None
    quantity_skew: _Alpha | None = None
    label_skew: _Alpha | None = None
    classes: Literal["all", "shared"] = "all"
    settings: dict[str, Any] = Field(default_factory=dict)
    model: Literal["best", "last"] = "best"
    methods: _Methods = ()
    equal_steps: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _check_cut(self) -> Scenario:
        useless = {"classes"} if self.cut else {"shared", "share", "quantity_skew", "label_skew"}
        for key in sorted(useless & self.model_fields_set):
            cut = "a data set is cut; see 'shared'" if self.cut else "no data set is cut"
            raise ValueError(f"key '{key}' does not apply where {cut}.")
        for key in sorted({"share", "equal_steps"} & self.model_fields_set if self.skew else ()):
            raise ValueError(
                f"key '{key}' needs sites of equal size; it does not apply with a skew."
            )
        if self.cut is None:
            return self
        if self.shared is None and (self.cut != "nih" or self.sites not in published_sites()):
            raise ValueError(
                f"needs key 'shared': no class sets are published for {self.sites} sites of "
                f"{self.cut}."
            )
        known = DATASETS[DATA_SETS[self.cut]].classes
        if self.shared is not None and known is not None:  # None: the file of the labels decides
            class_sets_of(known, int(str(self.sites)), shared=self.shared, seed=0)
        return self

    @property
    def skew(self) -> Skew | None:
        """How the sites of a cut differ; None: they do not."""
        return skew_of(self.quantity_skew, self.label_skew)

    @property
    def used_share(self) -> Fraction:
        """Share of a site's own training patients that is used, for `partition.write_sites`."""
        if self.share is None or not isinstance(self.sites, int):
            return Fraction(1)
        return self.share * self.sites

    @property
    def number_of_sites(self) -> int:
        """Number of sites; see `Study.with_sites_of` for `ALL_SITES`."""
        return self.sites if isinstance(self.sites, int) else len(self.sites)

    @property
    def site_names(self) -> tuple[str, ...]:
        """Names of the sites; see `Study.with_sites_of` for `ALL_SITES`."""
        if isinstance(self.sites, tuple):
            return self.sites
        return tuple(f"{self.cut}-{number}" for number in range(1, self.number_of_sites + 1))

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Names of the data sets that its sites train on."""
        return self.sites if isinstance(self.sites, tuple) else (str(self.cut),)


def _refuse(name: str, known: Collection[str], needed: str, got: str = "") -> None:
    """Refuse a name that is not known, with the nearest that is."""
    if name not in known:
        raise ValueError(f"{needed} ({nearest(name, tuple(known))}); got {(got or name)!r}.")


def _find_strategy(name: str, place: str) -> None:
    """Refuse a strategy that neither this software nor an installed package has."""
    try:
        find(name)
    except PartError as error:
        raise ValueError(f"{place}: {error}") from error


def _word(name: str) -> str:
    """Refuse a variant's name that cannot be part of a file's."""
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"a variant's name needs letters, digits, - and _ alone; got {name!r}.")
    return name


class Study(FileModel):
    """The keys of a study file.

    Attributes:
        title: Heading of the report.
        source: Paper and section that the study repeats, or where it is from.
        factor: What varies from scenario to scenario, for axes and tables.
        scenarios: At least one; names differ.
        quick: Names of the scenarios of the quick form.
        methods: Method -> strategies, or strategies with a variant: "fedavg refit".
        variants: Name -> setting -> value; they win over the scenarios'.
        seeds: Number of seeds: 0, 1, ...
        tests: Data sets that the models are tested on; none where the sites are the data file's.
        claims: Name of the shipped study whose claims are tested; "": the study's own name.
        name: Of the file; not a key.
        given: Whether the sites are those of the data file; not a key.
    """

    title: Text
    source: Text
    factor: Text
    scenarios: Annotated[tuple[Scenario, ...], Field(min_length=1)]
    quick: Annotated[tuple[Text, ...], Field(min_length=1), EachOnce]
    methods: Annotated[
        dict[Annotated[str, choice_validator(TITLES)], _Strategies], Field(min_length=1)
    ]
    variants: dict[Annotated[str, AfterValidator(_word)], dict[str, Any]] = Field(
        default_factory=dict
    )
    seeds: Annotated[int, Field(strict=True, ge=1)]
    tests: _DataSets = ()
    claims: Annotated[str, choice_validator(shipped_files.names("study_files"))] = ""
    name: str = Field(default="", exclude=True)
    given: bool = Field(default=False, exclude=True)

    @model_validator(mode="after")
    def _check_strategies(self) -> Study:
        for row in self.rows:
            place = f"key 'methods', key '{row.method}'"
            needed = f"{place} needs known"
            if row.federated:
                _find_strategy(row.job_strategy, place)
            else:
                _refuse(row.job_strategy, SOLO_STRATEGIES, f"{needed} strategies", row.strategy)
            if row.variant:
                _refuse(row.variant, self.variants or ["none"], f"{needed} variants", row.strategy)
        if unused := sorted(self.variants.keys() - {row.variant for row in self.rows}):
            raise ValueError(f"key 'variants' has {unused[0]!r}, which no method has.")
        return self

    @model_validator(mode="after")
    def _check_scenarios(self) -> Study:
        names = [scenario.name for scenario in self.scenarios]
        for number, scenario in enumerate(self.scenarios, start=1):
            if scenario.name in names[: number - 1]:
                raise ValueError(
                    f"key 'scenarios' needs another name for each scenario; got {scenario.name!r}."
                )
            place = f"key 'scenarios', entry {number}, key 'methods' needs methods of the study"
            for name in scenario.methods:
                _refuse(name, self.methods, place)
        for name in self.quick:
            _refuse(name, names, "key 'quick' needs names of scenarios")
        given = {scenario.sites == ALL_SITES for scenario in self.scenarios}
        if len(given) > 1:
            raise ValueError("key 'scenarios' needs 'sites: all' in all scenarios or in none.")
        if given == {True} and self.tests:
            raise ValueError("key 'tests' does not apply where the sites are the data file's.")
        if given == {False} and not self.tests:
            raise ValueError(f"needs key 'tests'; has {', '.join(sorted(self.model_fields_set))}.")
        if "complete" in self.methods and not any(scenario.cut for scenario in self.scenarios):
            raise ValueError(
                "key 'methods', key 'complete' needs a scenario that cuts a data set; no scenario "
                "has the key 'cut'."
            )
        return self

    @property
    def rows(self) -> tuple[Row, ...]:
        """Ways to train, in the file's order; see `rows_of`."""
        return tuple(Row(method, each) for method, all_ in self.methods.items() for each in all_)

    def settings_of(self, row: Row) -> Mapping[str, Any]:
        """Settings of the row's variant; empty without one."""
        return self.variants.get(row.variant, {})

    def rows_of(self, scenario: Scenario) -> tuple[Row, ...]:
        """The rows that are trained in a scenario: "complete" only where it cuts a data set."""
        return tuple(
            row
            for row in self.rows
            if (row.method != "complete" or scenario.cut)
            and row.method in (scenario.methods or (row.method,))
        )

    def with_sites_of(self, data: StudyData) -> Study:
        """The study with the sites of a data file, where its own file leaves them to that.

        Args:
            data: The data file.

        Raises:
            InputError: The data file has fewer than two sites.
        """
        if not self.given:
            return self
        sites = data.site_names
        if len(sites) < 2:
            raise InputError(
                f"study {self.name} trains on all sites of the data file and needs two or more; "
                f"{data.path} has {', '.join(sites)}. Add another one there."
            )
        scenarios = tuple(each.model_copy(update={"sites": sites}) for each in self.scenarios)
        return self.model_copy(update={"scenarios": scenarios, "tests": sites})


@dataclass(frozen=True)
class Selection:
    """The part of a study that is wanted.

    Attributes:
        scenarios: Names; None: all.
        methods: Names; None: all.
        seeds: Number of seeds; None: as in the study file.
        quick: Whether only the scenarios of the quick form are wanted.
    """

    scenarios: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: int | None = None
    quick: bool = False

    def __str__(self) -> str:
        parts = ["the quick form"] if self.quick else []
        for kind, names in (("scenarios", self.scenarios), ("methods", self.methods)):
            if names is not None:
                parts.append(f"{kind} {', '.join(names)}")
        if self.seeds is not None:
            parts.append(counted(self.seeds, "seed"))
        return "; ".join(parts) or "all of it"


def trainings(study: Study, selection: Selection) -> list[tuple[int, Scenario, Row]]:
    """All trainings that are selected, seed by seed.

    Args:
        study: The study.
        selection: The part of it that is wanted.

    Returns:
        Seed, scenario and row of each.

    Raises:
        InputError: What is selected is unknown, or nothing is left of the study.
    """
    scenarios = [scenario.name for scenario in study.scenarios]
    for kind, known, wanted in (
        ("scenario", scenarios, selection.scenarios),
        ("method", list(study.methods), selection.methods),
    ):
        for name in wanted or ():
            if name not in known:
                suggestion = nearest(name, known)
                raise InputError(f"study {study.name} has no {kind} {name!r}; {suggestion}.")
    found = [
        (seed, scenario, row)
        for seed in range(selection.seeds or study.seeds)
        for scenario in study.scenarios
        for row in study.rows_of(scenario)
        if scenario.name in (selection.scenarios or scenarios)
        and (scenario.name in study.quick or not selection.quick)
        and row.method in (selection.methods or study.methods)
    ]
    if not found:
        raise InputError(
            f"no run of study {study.name} matches all of the selection ({selection}). Combine "
            "fewer options."
        )
    return found


def shipped() -> tuple[str, ...]:
    """Names of the studies that come with the package."""
    return shipped_files.names("study_files")


def path_of(source: str | Path) -> Path:
    """Absolute path of a study file, given by its path or by the name of a shipped one.

    Raises:
        InputError: It is neither.
    """
    return shipped_files.find(source, "study_files", "study").absolute()


def read_study(source: str | Path) -> Study:
    """Read and check a study file.

    Args:
        source: Path of the file, or name of a shipped one; see `path_of`.

    Raises:
        InputError: The file does not exist or is not YAML, or a key is missing, unknown or has an
            unusable value; names the file and the key.
    """
    path = path_of(source)
    study = read_model(Study, path, "study file", InputError)
    given = study.scenarios[0].sites == ALL_SITES
    return study.model_copy(update={"name": path.stem, "given": given})
