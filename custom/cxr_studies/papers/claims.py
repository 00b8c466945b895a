"""What the papers claim about their studies: `published_claims.yaml`.

A claim consists of comparisons, of numbers that it says are above 0: in what one row of a study
beats another. Where the better row may be behind, they are claimed to be above minus the margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import fmean, linear_regression
from typing import Any

import yaml

from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario

EVERY_SITE = "every site"
"""In place of a test set: the mean over all of them that have such classes."""

_FILE = Path(__file__).with_name("published_claims.yaml")


@dataclass(frozen=True)
class Comparison:
    """Two rows on a test set.

    Attributes:
        test: The test set, or `EVERY_SITE`.
        kind: Of `KINDS`.
        group: Of `study_results.GROUPS`; "more_even" has its own.
        scenarios: Names; none: all of the study.
        model: Site whose model of the worse row is meant. None: the global one, else that of the
            site whose test set it is, else the mean over those that define the figure.
        margin: How far the better row may be behind.
    """

    better: Row
    worse: Row
    test: str
    kind: str = "ahead"
    group: str = "all"
    scenarios: tuple[str, ...] = ()
    model: str | None = None
    margin: float = 0.0

    @property
    def baseline(self) -> Row:
        """The fully labelled one, whose batch norm is trained."""
        return Row("complete", "fedavg")

    @property
    def rows(self) -> tuple[Row, ...]:
        """All that have to be trained."""
        return (self.better, self.worse, *([self.baseline] if self.kind == "nearer" else []))


@dataclass(frozen=True)
class Claim:
    """What the papers claim about a study.

    Attributes:
        study: Name of the study's file.
        source: Paper, and section, table or figure.
        comparisons: What has to be above 0.
    """

    text: str
    study: str
    source: str
    published: str
    comparisons: tuple[Comparison, ...]


@cache
def read_claims() -> tuple[Claim, ...]:
    """All claims, in the file's order."""
    return tuple(
        Claim(
            each["claim"],
            study,
            each["source"],
            each["published"],
            tuple(which for entry in each["comparisons"] for which in _comparisons(entry)),
        )
        for study, claims in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()
        for each in claims
    )


def _comparisons(entry: Mapping[str, Any]) -> Iterator[Comparison]:
    rest = {name: entry[name] for name in ("kind", "model", "margin") if name in entry}
    better = Row(*entry["better"].split())
    scenarios: list[tuple[str, ...]] = [(name,) for name in entry.get("scenarios", ())] or [()]
    for worse, test, group, names in product(
        entry["worse"], entry["tests"], entry.get("groups", ["all"]), scenarios
    ):
        row = Row(*worse.split())
        yield Comparison(better, row, test, group=group, scenarios=names, **rest)


Auroc = Callable[[Row, Scenario, str], float]
"""Mean AUROC of a row in a scenario over a group of classes, on a comparison's test set and of one
seed; NaN where it is not defined, or not finished."""


def _lead(auroc: Auroc, which: Comparison, scenario: Scenario) -> float:
    better, worse = (auroc(row, scenario, which.group) for row in (which.better, which.worse))
    return better - worse


def _nearer(auroc: Auroc, which: Comparison, scenario: Scenario) -> float:
    better, worse, goal = (auroc(row, scenario, which.group) for row in which.rows)
    return abs(goal - worse) - abs(goal - better)


def _more_even(auroc: Auroc, which: Comparison, scenario: Scenario) -> float:
    better, worse = (
        auroc(row, scenario, "shared") - auroc(row, scenario, "unique") for row in which.rows
    )
    return worse - better


def _mean(
    of: Callable[[Auroc, Comparison, Scenario], float],
    auroc: Auroc,
    which: Comparison,
    scenarios: Sequence[Scenario],
) -> float:
    return fmean(of(auroc, which, each) for each in scenarios)


def _growth(
    along: Callable[[Scenario], float],
    auroc: Auroc,
    which: Comparison,
    scenarios: Sequence[Scenario],
) -> float:
    """How far a line through the leads rises, from the first scenario along it to the last."""
    places = [along(each) for each in scenarios]
    if len(set(places)) < 2:
        return math.nan
    slope = linear_regression(places, [_lead(auroc, which, each) for each in scenarios]).slope
    return slope * (max(places) - min(places))


@dataclass(frozen=True)
class Kind:
    """What a row is claimed to be, or to have, beside another one, and the number that says so.

    Attributes:
        number: Of one seed; NaN where a scenario does not define it.
    """

    said: str
    number: Callable[[Auroc, Comparison, Sequence[Scenario]], float]


KINDS: Mapping[str, Kind] = {
    "ahead": Kind("is ahead of", partial(_mean, _lead)),
    "nearer": Kind("is nearer to the fully labelled baseline than", partial(_mean, _nearer)),
    "more_even": Kind("loses less from shared to unique classes than", partial(_mean, _more_even)),
    "grows_with_sites": Kind(
        "gains, the more sites, on", partial(_growth, lambda scenario: scenario.number_of_sites)
    ),
    "grows_with_unshared": Kind(
        "gains, the fewer classes are shared, on",
        partial(_growth, lambda scenario: -(scenario.shared or 0)),
    ),
    "same": Kind("has the same models as", partial(_mean, _lead)),
}
"""Kinds of claims, as the file calls them."""
