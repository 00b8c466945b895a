"""Claims, and the numbers that they say are above 0: in what one row of a study beats another.

Where the better row may be behind, they are claimed to be above minus the margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, linear_regression

from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario

AHEAD = "is ahead of"
NEARER = "is nearer to the fully labelled baseline than"
MORE_EVEN = "loses less from shared to unique classes than"
GROWS_WITH_SITES = "gains, the more sites, on"
GROWS_WITH_UNSHARED = "gains, the fewer classes are shared, on"
SAME = "has the same models as"
"""What a row is claimed to be, or to have, beside another one."""

EVERY_SITE = "every site"
"""In place of a test set: the mean over all of them that have such classes."""


@dataclass(frozen=True)
class Comparison:
    """Two rows on a test set.

    Attributes:
        test: The test set, or `EVERY_SITE`.
        group: Of `study_results.GROUPS`; `MORE_EVEN` has its own.
        scenarios: Names; none: all of the study.
        model: Site whose model of the worse row is meant. None: the global one, else that of the
            site whose test set it is, else the mean over those that define the figure.
        margin: How far the better row may be behind.
    """

    better: Row
    worse: Row
    test: str
    kind: str = AHEAD
    group: str = "all"
    scenarios: tuple[str, ...] = ()
    model: str | None = None
    margin: float = 0.0

    @property
    def baseline(self) -> Row:
        """The fully labelled one."""
        return Row("complete", self.better.strategy)

    @property
    def rows(self) -> tuple[Row, ...]:
        """All that have to be trained."""
        return (self.better, self.worse, *([self.baseline] if self.kind == NEARER else []))


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


Auroc = Callable[[Row, Scenario, str], float]
"""Mean AUROC of a row in a scenario over a group of classes, on a comparison's test set and of one
seed; NaN where it is not defined, or not finished."""

Number = Callable[[Auroc, Comparison, Sequence[Scenario]], float]


def _lead(auroc: Auroc, which: Comparison, scenario: Scenario) -> float:
    better, worse = (auroc(row, scenario, which.group) for row in (which.better, which.worse))
    return better - worse


def _nearer(auroc: Auroc, which: Comparison, scenario: Scenario) -> float:
    goal, better, worse = (
        auroc(row, scenario, which.group) for row in (which.baseline, which.better, which.worse)
    )
    return abs(goal - worse) - abs(goal - better)


def _more_even(auroc: Auroc, which: Comparison, scenario: Scenario) -> float:
    better, worse = (
        auroc(row, scenario, "shared") - auroc(row, scenario, "unique")
        for row in (which.better, which.worse)
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


KINDS: Mapping[str, Number] = {
    AHEAD: partial(_mean, _lead),
    NEARER: partial(_mean, _nearer),
    MORE_EVEN: partial(_mean, _more_even),
    GROWS_WITH_SITES: partial(_growth, lambda scenario: scenario.number_of_sites),
    GROWS_WITH_UNSHARED: partial(_growth, lambda scenario: -(scenario.shared or 0)),
    SAME: partial(_mean, _lead),
}
"""What is claimed -> the number, of one seed; NaN where a scenario does not define it."""
