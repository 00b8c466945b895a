"""What the papers claim, and whether a comparison bears it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from cxr_study.comparison.grid import ENDINGS, Cell
from cxr_study.comparison.outcome import Outcome
from cxr_study.evaluation.seed_intervals import Interval, interval
from cxr_study.evaluation.verdicts import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED, verdict
from cxr_study.jobs.methods import Row

UNIQUE = ("unique classes, own site", "unique classes, other site")
GLOBAL = ("fedavg", "fedbn+")
"""Strategies with a global model."""


@dataclass(frozen=True)
class Claim:
    """A claim of the papers: one row is better than another.

    Attributes:
        text: The claim.
        pairs: Methods, the better one first, or strategies of one method.
        measures: Of `measures.MEASURES`, where it is claimed.
        published: Where, and with which mean AUROCs.
    """

    text: str
    pairs: tuple[tuple[Row, Row], ...]
    measures: tuple[str, ...]
    published: str


@dataclass(frozen=True)
class Finding:
    """One comparison of two rows on one measure at one ending.

    Attributes:
        better: The row that is claimed to be better.
        worse: The other one.
        measure: Of `measures.MEASURES`.
        ending: Of `grid.ENDINGS`.
        difference: Better minus worse, paired by seed; None where a figure is not defined.
        verdict: `REPRODUCED` where the interval of the difference is above 0, `NOT_REPRODUCED`
            where it is below, else `NOT_DECIDED`.
    """

    better: Row
    worse: Row
    measure: str
    ending: str
    difference: Interval | None
    verdict: str


def _methods(*pairs: tuple[str, str]) -> tuple[tuple[Row, Row], ...]:
    """Pairs of methods, with each strategy in common."""
    return tuple((Row(a, f), Row(b, f)) for (a, b), f in product(pairs, GLOBAL))


CLAIMS = (
    Claim(
        "Unique classes collapse where what a site does not label counts as absent: in vanilla "
        "federated learning and in centralised training",
        _methods(
            ("surgical", "vanilla"),
            ("surgical", "centralised"),
            ("centralised-partial", "centralised"),
        ),
        UNIQUE,
        "ML4H 2024, Table 3, at their own sites: surgical 0.78 and 0.75, vanilla 0.60 and 0.62, "
        "centralised 0.60 and 0.69",
    ),
    Claim(
        "Surgical aggregation is at least as good as partial loss on unique classes",
        _methods(("surgical", "partial_loss")),
        UNIQUE,
        "ML4H 2024, Table 3: surgical 0.78 and 0.75, partial loss 0.73 and 0.67",
    ),
    Claim(
        "FedBN+ is at least as good as FedAvg across sites",
        tuple(
            (Row(method, "fedbn+"), Row(method, "fedavg"))
            for method in ("surgical", "partial_loss", "vanilla")
        ),
        ("unique classes, other site", "all classes"),
        "ML4H 2024, Table 2, surgical aggregation at NIH, CheXpert and MIMIC: FedBN+ 0.81, 0.76, "
        "0.71; FedAvg 0.80, 0.73, 0.70",
    ),
)
"""Claims that figures decide; `equal_classes` decides the one about equal class sets."""

EQUAL_CLASSES = (
    "Where all sites label the same classes, surgical aggregation is FedAvg, bit for bit"
)


def findings(claim: Claim, outcomes: Mapping[tuple[Row, int], Outcome]) -> list[Finding]:
    """Test a claim on what was trained.

    Args:
        claim: One of `CLAIMS`.
        outcomes: (row, seed) -> outcome; some may be missing.
    """
    found = []
    for (better, worse), measure, ending in product(claim.pairs, claim.measures, ENDINGS):
        difference = interval(list(_differences(better, worse, measure, ending, outcomes)))
        found.append(Finding(better, worse, measure, ending, difference, verdict(difference)))
    return found


def equal_classes(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> str:
    """Verdict on `EQUAL_CLASSES`: whether all trainings ended with the same models.

    Args:
        cells: Trainings on sites with the same classes, by different methods.
        outcomes: Name of a cell -> outcome; some may be missing.
    """
    if not cells or any(cell.name not in outcomes for cell in cells):
        return NOT_DECIDED
    digests = [
        {ending: dict(ended.digests) for ending, ended in outcomes[cell.name].endings.items()}
        for cell in cells
    ]
    return REPRODUCED if all(each == digests[0] for each in digests) else NOT_REPRODUCED


def _differences(
    better: Row,
    worse: Row,
    measure: str,
    ending: str,
    outcomes: Mapping[tuple[Row, int], Outcome],
) -> Iterator[float]:
    for row, seed in outcomes:
        if row == better and (worse, seed) in outcomes:
            first = outcomes[better, seed].auroc(ending, measure)
            second = outcomes[worse, seed].auroc(ending, measure)
            if first is not None and second is not None:
                yield first - second
