"""Claims, and the numbers that they say are above 0: in what one row of a study beats another.

Where the better row may be behind, they are claimed to be above minus the margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, linear_regression

from cxr_study.jobs.methods import Row
from cxr_study.studies.plan.study_file import Setting

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
        better: The row that is claimed to be better.
        worse: The other.
        test: The test set, or `EVERY_SITE`.
        kind: Key of `KINDS`.
        group: Of `means.GROUPS`; `MORE_EVEN` has its own.
        settings: Names; none: all of the study.
        model: Site whose model of the worse row is meant. None: the global one, else that of the
            site whose test set it is, else the mean over those that define the figure.
        margin: How far the better row may be behind.
    """

    better: Row
    worse: Row
    test: str
    kind: str = AHEAD
    group: str = "all"
    settings: tuple[str, ...] = ()
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
        text: The claim.
        study: Name of the study's file.
        source: Paper, and section, table or figure.
        published: The numbers there.
        comparisons: What has to be above 0.
    """

    text: str
    study: str
    source: str
    published: str
    comparisons: tuple[Comparison, ...]


Auroc = Callable[[Row, Setting, str], float]
"""Mean AUROC of a row in a setting over a group of classes, on a comparison's test set and of one
seed; NaN where it is not defined, or not finished."""

Number = Callable[[Auroc, Comparison, Sequence[Setting]], float]


def _leads(auroc: Auroc, which: Comparison, settings: Sequence[Setting]) -> list[float]:
    """How far the better row is ahead in each setting."""
    return [
        auroc(which.better, each, which.group) - auroc(which.worse, each, which.group)
        for each in settings
    ]


def _ahead(auroc: Auroc, which: Comparison, settings: Sequence[Setting]) -> float:
    return fmean(_leads(auroc, which, settings))


def _nearer(auroc: Auroc, which: Comparison, settings: Sequence[Setting]) -> float:
    def away(row: Row, setting: Setting) -> float:
        return abs(auroc(which.baseline, setting, which.group) - auroc(row, setting, which.group))

    return fmean(away(which.worse, each) - away(which.better, each) for each in settings)


def _more_even(auroc: Auroc, which: Comparison, settings: Sequence[Setting]) -> float:
    def loss(row: Row, setting: Setting) -> float:
        return auroc(row, setting, "shared") - auroc(row, setting, "unique")

    return fmean(loss(which.worse, each) - loss(which.better, each) for each in settings)


def _growth(
    auroc: Auroc,
    which: Comparison,
    settings: Sequence[Setting],
    *,
    along: Callable[[Setting], float],
) -> float:
    """How far a line through the leads rises, from the first setting along it to the last."""
    places = [along(each) for each in settings]
    if len(set(places)) < 2:
        return math.nan
    slope = linear_regression(places, _leads(auroc, which, settings)).slope
    return slope * (max(places) - min(places))


def _sites(setting: Setting) -> float:
    return setting.sites if isinstance(setting.sites, int) else len(setting.sites)


def _unshared(setting: Setting) -> float:
    return -(setting.shared or 0)


KINDS: Mapping[str, Number] = {
    AHEAD: _ahead,
    NEARER: _nearer,
    MORE_EVEN: _more_even,
    GROWS_WITH_SITES: partial(_growth, along=_sites),
    GROWS_WITH_UNSHARED: partial(_growth, along=_unshared),
    SAME: _ahead,
}
"""What is claimed -> the number, of one seed; NaN where a setting does not define it."""
