"""What a comparison found: figures with their intervals, and verdicts on the papers' claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cxr_study.comparison.claims import CLAIMS, Claim, Finding, findings
from cxr_study.comparison.grid import ENDINGS, Setup
from cxr_study.comparison.measures import MEASURES
from cxr_study.comparison.outcome import Outcome
from cxr_study.evaluation.seed_intervals import Interval, interval
from cxr_study.jobs.methods import Row


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Attributes:
        row: How it was trained.
        trained: Of how many seeds there is an outcome.
        figures: (ending, measure) -> mean over seeds; None where it is not defined.
        stopped: (round of the best model, rounds made) of each outcome, by seed.
    """

    row: Row
    trained: int
    figures: Mapping[tuple[str, str], Interval | None]
    stopped: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Verdict:
    """What came out about one claim."""

    claim: Claim
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Summary:
    """All that a comparison says.

    Attributes:
        setup: What all rows have in common.
        seeds: How many.
        phantom: Whether the data are drawn, anew for every seed.
        lines: Of the table.
        verdicts: On `claims.CLAIMS`.
        equal_classes: Verdict on `claims.EQUAL_CLASSES`.
        failures: Name of a training -> why it failed.
        seconds: Wall time of all trainings, as if one had come after the other.
        version: Of this project.
    """

    setup: Setup
    seeds: int
    phantom: bool
    lines: tuple[Line, ...]
    verdicts: tuple[Verdict, ...]
    equal_classes: str
    failures: Mapping[str, str]
    seconds: float
    version: str


def lines(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> tuple[Line, ...]:
    """The table: one line for each row."""
    return tuple(_line(row, [found for found in outcomes if found.cell.row == row]) for row in rows)


def verdicts(outcomes: Sequence[Outcome]) -> tuple[Verdict, ...]:
    """All claims, tested."""
    by_cell = {(found.cell.row, found.cell.seed): found for found in outcomes}
    return tuple(Verdict(claim, tuple(findings(claim, by_cell))) for claim in CLAIMS)


def _line(row: Row, outcomes: Sequence[Outcome]) -> Line:
    figures = {}
    for ending in ENDINGS:
        for measure in MEASURES:
            values = [found.auroc(ending, measure) for found in outcomes]
            figures[ending, measure] = interval([v for v in values if v is not None])
    early = [found.endings[ENDINGS[1]] for found in sorted(outcomes, key=lambda o: o.cell.seed)]
    return Line(row, len(outcomes), figures, tuple((e.round, e.rounds) for e in early))
