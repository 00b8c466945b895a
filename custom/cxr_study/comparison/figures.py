"""The figures of a comparison's page, as SVG elements."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cxr_study.comparison import text
from cxr_study.comparison.grid import ENDINGS
from cxr_study.comparison.measures import MEASURES
from cxr_study.comparison.summary import Summary, Verdict
from cxr_study.evaluation.seed_intervals import Interval
from cxr_study.evaluation.verdicts import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED
from cxr_study.reports.page.svg import FULL_WIDTH, GLOBAL, INK, LACKED, MUTED, OWN, STYLE, svg

LOOKS = dict(zip(ENDINGS, ((MUTED, "o"), (GLOBAL, "s")), strict=True))
"""Ending -> colour and marker."""

VERDICT_LOOKS = {REPRODUCED: (GLOBAL, "o"), NOT_REPRODUCED: (LACKED, "D"), NOT_DECIDED: (OWN, "s")}
"""Verdict -> colour and marker."""

_SHIFTS = dict(zip(ENDINGS, (-0.16, 0.16), strict=True))
_RIGHT = 0.1  # inches beside the panels
_ROW = 0.27


def aurocs(summary: Summary, name: str) -> str:
    """Draw mean AUROCs with their intervals: a panel for each measure, a line for each row."""
    labels = [text.name(line.row) for line in summary.lines]
    groups = [line.row.method for line in summary.lines]
    with mpl.rc_context(STYLE):
        figure, panels = _panels(len(MEASURES), labels, groups, left=2.5)
        for axes, measure in zip(panels, MEASURES, strict=True):
            axes.set_title(measure, fontsize=8.5, color=INK)
            for place, line in enumerate(summary.lines):
                for ending in ENDINGS:
                    value = line.figures[ending, measure]
                    _point(axes, place + _SHIFTS[ending], value, *LOOKS[ending])
                if all(line.figures[ending, measure] is None for ending in ENDINGS):
                    axes.text(
                        0.5, place, text.cell(line, ENDINGS[0], measure), fontsize=7, color=MUTED,
                        ha="center", va="center", transform=axes.get_yaxis_transform(),
                    )  # fmt: skip
            axes.margins(x=0.06)
            axes.locator_params(axis="x", nbins=4)
        return svg(figure, name, "Mean AUROC of every method and strategy")


def differences(verdict: Verdict, name: str) -> str:
    """Draw the differences that decide a claim: a panel for each measure, a line for each pair.

    Of the two points of a line the upper one is at equal rounds, the lower one at early stopping.
    """
    pairs = list(dict.fromkeys(text.pair(finding) for finding in verdict.findings))
    groups = [text.pair(finding) for finding in verdict.findings]
    measures = verdict.claim.measures
    with mpl.rc_context(STYLE):
        figure, panels = _panels(len(measures), pairs, pairs, left=3.95)
        for axes, measure in zip(panels, measures, strict=True):
            axes.set_title(measure, fontsize=8.5, color=INK)
            axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
            for group, finding in zip(groups, verdict.findings, strict=True):
                if finding.measure == measure:
                    place = pairs.index(group) + _SHIFTS[finding.ending]
                    _point(axes, place, finding.difference, *VERDICT_LOOKS[finding.verdict])
            axes.margins(x=0.06)
            axes.locator_params(axis="x", nbins=6)
        return svg(figure, name, f"Differences: {verdict.claim.text}")


def _panels(
    number: int, labels: Sequence[str], groups: Sequence[str], *, left: float
) -> tuple[Figure, list[Axes]]:
    """Panels side by side with a common axis of labels; a rule between groups."""
    height = 0.75 + _ROW * len(labels)
    width = (FULL_WIDTH - left - _RIGHT) / number
    figure = Figure((FULL_WIDTH, height))
    panels = []
    for place in range(number):
        axes = figure.add_axes(
            (
                (left + place * width) / FULL_WIDTH,
                0.32 / height,
                (width - 0.18) / FULL_WIDTH,
                1 - 0.62 / height,
            )
        )
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_yticks(range(len(labels)), labels if place == 0 else [""] * len(labels))
        axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=7.8)
        axes.tick_params(axis="x", labelsize=7.5)
        axes.grid(axis="y", visible=False)
        for after in range(1, len(groups)):
            if groups[after] != groups[after - 1]:
                axes.axhline(after - 0.5, color="#C3CBD3", linewidth=0.7)
        panels.append(axes)
    return figure, panels


def _point(axes: Axes, place: float, value: Interval | None, colour: str, marker: str) -> None:
    if value is None:
        return
    if value.low is not None and value.high is not None:
        axes.plot([value.low, value.high], [place, place], color=colour, linewidth=1.6)
    axes.plot([value.mean], [place], marker, color=colour, markersize=4.2)
