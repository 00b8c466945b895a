"""Layouts of a study's tables: those of its paper, or those of an ablation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

import pandas as pd
import yaml

from cxr_studies.analysis.study_results import GROUPS
from cxr_studies.papers.published_results import AVERAGE, Place, Published
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import SERVER
from cxr_studies.plan.study_file import Study


class _Titles(dict[str, str]):
    """Titles by name; a name without a title, such as a hospital's, is its own title."""

    def __missing__(self, name: str) -> str:
        return name


TESTS: Mapping[str, str] = _Titles(nih="NIH", chexpert="CheXpert", mimic="MIMIC")
"""Test set -> its title in tables; sites that are data sets have the same titles."""

Metric = Literal["auroc", "bce"]


def model_title(model: str) -> str:
    """Title of a site's own model, or of the server's."""
    return "server's model" if model == SERVER else TESTS[model]


@dataclass(frozen=True)
class Column:
    """A column of a table: a metric on a test set; with several scenarios, its mean over them.

    Attributes:
        heading: Heading of the column alone.
        test: Test set.
        scenarios: Names; several for an average.
        group: Of classes; see `study_results.GROUPS`.
        metric: "auroc" or "bce".
        over: Heading that it shares with its neighbors; "" for none.
    """

    heading: str
    test: str
    scenarios: tuple[str, ...]
    group: str = "all"
    metric: Metric = "auroc"
    over: str = ""

    def place(self, row: Row, model: str) -> Place:
        """What the mean in the column's cell of a row and a model is of."""
        scenario = self.scenarios[0] if len(self.scenarios) == 1 else AVERAGE
        return Place(scenario, row, model, self.test, self.group)


@dataclass(frozen=True)
class Layout:
    """A table without its values.

    Attributes:
        name: For files and references; letters, digits and hyphens.
        title: For the caption.
        columns: At least one.
        frozen: Whether federations that train batch norm are left out.
        source: Key of `published_results.SOURCES` whose table it is; "": of all that are known.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    frozen: bool = False
    source: str = ""

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Those of a study's rows that the table shows."""
        return [r for r in rows if not (self.frozen and r.federated) or r.strategy == "fedbn+"]

    @property
    def spans(self) -> tuple[tuple[str, int], ...]:
        """Shared headings with their numbers of columns; empty where there is none."""
        spans = [(over, len(list(each))) for over, each in groupby(c.over for c in self.columns)]
        return tuple(spans) if any(over for over, _ in spans) else ()


def classes(test: str, group: str) -> str:
    """Title of a group of a test set's classes.

    Args:
        test: Test set.
        group: Of `study_results.GROUPS`, or a site's name: the classes that it labels.
    """
    named = {
        "all": "",
        "shared": ", shared classes",
        "unique": ", unique classes",
        "elsewhere": ", classes of other sites",
        test: ", own classes",
    }
    return TESTS[test] + named.get(group, f", classes of {TESTS[group]}")


def averages(study: Study) -> bool:
    """Whether to show means over the scenarios: where all of them cut the same data set.

    Scenarios with data sets as sites are shown one by one, as in the papers.
    """
    cuts = {scenario.cut for scenario in study.scenarios}
    return len(cuts) == 1 and None not in cuts


def ablation(
    study: Study, finished: Collection[str], published: Sequence[Published]
) -> Iterator[Layout]:
    """The tables of an ablation: one for each test set and group of classes with published results.

    Columns are the scenarios with a finished run, and their average if `averages` allows it.

    Args:
        study: The study.
        finished: Names of the scenarios with a finished run.
        published: Results of the study's experiment in the papers.
    """
    scenarios = tuple(each.name for each in study.scenarios if each.name in finished)
    for test in study.tests:
        measured = {line.place.group for line in published if line.place.test == test} | {"all"}
        for group in filter(measured.__contains__, GROUPS):
            columns = [Column(name, test, (name,), group, over=study.factor) for name in scenarios]
            if len(scenarios) > 1 and averages(study):
                columns.append(Column(f"average of {len(scenarios)}", test, scenarios, group))
            title = f"{study.title}: {classes(test, group)}"
            yield Layout(f"{test}-{group}", title, tuple(columns))


_KINDS = {
    "all": "all classes",
    "shared": "shared",
    "unique": "unique, this site",
    "elsewhere": "unique, other sites",
}  # group of classes -> heading, where each site has a test split of its own


def of_test_splits(study: Study, means: pd.DataFrame) -> Iterator[Layout]:
    """Tables of a study whose sites have site files: one for each site's test split.

    Args:
        study: The study.
        means: See `study_results.by_run`; its groups of classes are the columns.
    """
    for test in study.tests:
        here = means[means["test"] == test]
        columns = tuple(
            Column(_KINDS[group], test, (scenario.name,), group, over=scenario.name)
            for scenario in study.scenarios
            for group in _KINDS
            if group in set(here.loc[here["scenario"] == scenario.name, "group"])
        )
        yield Layout(f"{test}-classes", f"{study.title}: {TESTS[test]}", columns)


def _of_paper(
    name: str,
    title: str,
    scenario: str,
    columns: Sequence[str],
    source: str,
    *,
    bce: bool = False,
    frozen: bool = False,
) -> Layout:
    """A table of a scenario; a column is a test set, with a group of classes after a blank."""
    made: list[Column] = []
    for test, _, group in (column.partition(" ") for column in columns):
        group = group or "all"
        place, heading = (test, (scenario,), group), classes(test, group)
        if bce:
            made.append(Column("BCE", *place, "bce", heading))
        made.append(Column("AUROC", *place, over=heading) if bce else Column(heading, *place))
    return Layout(name, title, tuple(made), frozen, source)


PAPERS: Mapping[str, tuple[Layout, ...]] = {
    study: tuple(
        _of_paper(**each, source=source) for source, tables in of.items() for each in tables
    )
    for study, of in yaml.safe_load(
        Path(__file__).with_name("paper_tables.yaml").read_text(encoding="utf-8")
    ).items()
}
"""Shipped study -> the tables of its papers."""
