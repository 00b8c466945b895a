"""The papers' claims about their studies, as comparisons that can be computed.

The file `published_claims.yaml` has, for each study, a list of claims:

    claim, published, source    in words, the published numbers, and where they are
    comparisons                 a list of:
        better, worse           row(s), "<method> <strategy>"; several worse ones are several
        tests, groups           test sets and groups of classes; all combinations are compared;
                                the group "own" is what NIH or CheXpert labels, on
                                its test set, and "all" on any other
        kind, model, margin, other_test, scenarios    optional; see `Comparison`

A comparison gives a number that is claimed to be above 0: by how much one row of a study is better
than another. With a margin it is claimed to be above minus the margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import fmean, linear_regression
from typing import Any

import yaml

from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario

EVERY_SITE = "every site"
"""In place of a test set: the mean over all test sets that have classes of the group."""

_HOSPITALS = ("nih", "chexpert")
"""Test sets with a group of classes of the same name."""

BASELINE = Row("complete", "fedavg")
"""The fully labelled baseline, whose batch norm is trained."""

_FILE = Path(__file__).with_name("published_claims.yaml")


@dataclass(frozen=True)
class Comparison:
    """Two rows compared on a test set.

    Attributes:
        better: Row that is claimed to be better.
        worse: Row that it is compared with.
        test: The test set, or `EVERY_SITE`.
        kind: Of `KINDS`.
        group: Of `study_results.GROUPS`; "more_even" has its own.
        scenarios: Names; none: all of the study.
        model: Model of the worse row: a site's name, or the server's. None: the global one, else
            that of the site whose test set it is, else the mean over those that define the metric.
        margin: By how much the better row may be behind.
        other_test: Of "leads_more": where the lead is claimed to be smaller than on the test set.
    """

    better: Row
    worse: Row
    test: str
    kind: str = "ahead"
    group: str = "all"
    scenarios: tuple[str, ...] = ()
    model: str | None = None
    margin: float = 0.0
    other_test: str | None = None

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows that have to be trained for the comparison."""
        return (self.better, self.worse, *([BASELINE] if self.kind == "nearer" else []))


@dataclass(frozen=True)
class Claim:
    """A claim of the papers about a study.

    Attributes:
        text: The claim in words.
        study: Name of the study's file.
        source: Paper, and section, table or figure.
        published: The numbers that the paper gives for it, in words.
        comparisons: Each gives a number that has to be above 0.
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
    """The comparisons of an entry of the file: all combinations of its lists."""
    names = ("kind", "model", "margin", "other_test")
    rest = {name: entry[name] for name in names if name in entry}
    better = Row(*entry["better"].split())
    scenarios: list[tuple[str, ...]] = [(name,) for name in entry.get("scenarios", ())] or [()]
    for worse, test, group, chosen in product(
        entry["worse"], entry["tests"], entry.get("groups", ["all"]), scenarios
    ):
        row = Row(*worse.split())
        of = (test if test in _HOSPITALS else "all") if group == "own" else group
        yield Comparison(better, row, test, group=of, scenarios=chosen, **rest)


Aurocs = Callable[[Comparison, Scenario], Sequence[float]]
"""Mean AUROC of each of a comparison's rows in a scenario, on its test set, over its group of
classes and of one seed; NaN where it is not defined, or not finished."""


def _lead(aurocs: Aurocs, which: Comparison, scenario: Scenario) -> float:
    """Better row minus worse row."""
    better, worse = aurocs(which, scenario)
    return better - worse


def _nearer(aurocs: Aurocs, which: Comparison, scenario: Scenario) -> float:
    """How much nearer the better row is to the fully labelled baseline than the worse one."""
    better, worse, goal = aurocs(which, scenario)
    return abs(goal - worse) - abs(goal - better)


def _loses_less(aurocs: Aurocs, which: Comparison, scenario: Scenario) -> float:
    """How much smaller the loss from shared classes to the comparison's group is."""
    shared = replace(which, group="shared")
    return _lead(aurocs, which, scenario) - _lead(aurocs, shared, scenario)


def _more_even(aurocs: Aurocs, which: Comparison, scenario: Scenario) -> float:
    """How much smaller the loss from shared to unique classes is."""
    return _loses_less(aurocs, replace(which, group="unique"), scenario)


def _leads_more(aurocs: Aurocs, which: Comparison, scenario: Scenario) -> float:
    """How much larger the lead is on the test set than on the other one."""
    there = str(which.other_test)
    other = replace(which, test=there, group=there if which.group == which.test else which.group)
    return _lead(aurocs, which, scenario) - _lead(aurocs, other, scenario)


def _mean(
    of: Callable[[Aurocs, Comparison, Scenario], float],
    aurocs: Aurocs,
    which: Comparison,
    scenarios: Sequence[Scenario],
) -> float:
    """Mean of a number over scenarios."""
    return fmean(of(aurocs, which, each) for each in scenarios)


def _growth(
    along: Callable[[Scenario], float],
    aurocs: Aurocs,
    which: Comparison,
    scenarios: Sequence[Scenario],
) -> float:
    """Rise of a regression line through the leads, from the first scenario along it to the last."""
    places = [along(each) for each in scenarios]
    if len(set(places)) < 2:
        return math.nan
    slope = linear_regression(places, [_lead(aurocs, which, each) for each in scenarios]).slope
    return slope * (max(places) - min(places))


@dataclass(frozen=True)
class Kind:
    """A kind of claim, and the number that it says is above 0.

    Attributes:
        phrase: Verb of the sentence "<better> <phrase> <worse>".
        number: Of one seed; NaN where a scenario does not define it.
    """

    phrase: str
    number: Callable[[Aurocs, Comparison, Sequence[Scenario]], float]


KINDS: Mapping[str, Kind] = {
    "ahead": Kind("is ahead of", partial(_mean, _lead)),
    "nearer": Kind("is nearer to the fully labelled baseline than", partial(_mean, _nearer)),
    "more_even": Kind("loses less from shared to unique classes than", partial(_mean, _more_even)),
    "holds_up": Kind("loses less from shared to all classes than", partial(_mean, _loses_less)),
    "leads_more": Kind(
        "is further ahead than on the other test set of", partial(_mean, _leads_more)
    ),
    "grows_with_sites": Kind(
        "gains, the more sites, on", partial(_growth, lambda scenario: scenario.number_of_sites)
    ),
    "grows_with_unshared": Kind(
        "gains, the fewer classes are shared, on",
        partial(_growth, lambda scenario: -(scenario.shared or 0)),
    ),
    "grows_with_classes": Kind(
        "gains, where each site labels classes of its own, on",
        partial(_growth, lambda scenario: float(scenario.classes == "all")),
    ),
    "same": Kind("has the same models as", partial(_mean, _lead)),
}
"""Kind of claim, as the file names it -> its phrase and number."""
