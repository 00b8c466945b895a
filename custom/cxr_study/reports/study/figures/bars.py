"""What methods reach, in a scenario or on average over several, as the papers' Figures 7 and 8."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cxr_study.common.wording import listed
from cxr_study.evaluation.seed_intervals import Spread, spread
from cxr_study.jobs.methods import Row
from cxr_study.reports.page.axes import axes_at, beside, name_rows
from cxr_study.reports.page.svg import INK, MUTED, WIDTH
from cxr_study.reports.study.figures.style import LOOK, METHODS, in_scenario, row_name, rows, svg
from cxr_study.reports.study.tables.layouts import TESTS
from cxr_study.studies.analysis.study_results import StudyResults

CHANCE = 0.5
"""AUROC where bars begin."""

_ACROSS = 2  # panels side by side at most; more are below each other
_ROW, _BELOW = 0.25, 0.5  # inches; the numbers and what they are, below a panel
_NAMES, _TEXT = 1.95, 0.75  # inches, beside panels


@mpl.rc_context(LOOK)
def bars(
    results: StudyResults, places: Sequence[str], marks: Mapping[tuple[Row, str], str], name: str
) -> str | None:
    """Draw the average over scenarios of the mean AUROC over all classes, for each test set.

    A bar per row; beside it its average, and the mark of how it differs from surgical aggregation.
    Averaged are means over seeds, with the standard deviation over scenarios as a thin line, as in
    the papers. Where a mean is defined in some scenarios only, the average is over those, and it is
    said how many they are. Where sites have models of their own, see `looks.models_tested`.

    Args:
        results: Of the study.
        places: Names of the scenarios; of a single one there is no standard deviation.
        marks: (row, test set) -> mark of significance; see `paired_tests.mark`.
        name: Of the element; see `page.svg.svg`.

    Returns:
        None where no mean is defined.
    """
    found: dict[tuple[str, Row], Spread] = {}
    for test in results.study.tests:
        for row in rows(results):
            average = spread([in_scenario(results, row, test, place).value for place in places])
            if average is not None:
                found[test, row] = average
    if not found:
        return None
    tests = list(dict.fromkeys(test for test, _ in found))
    shown = [row for row in rows(results) if row in {row for _, row in found}]
    figure, panels = _panels(tests, shown)
    for axes, test in zip(panels, tests, strict=True):
        for place, row in enumerate(shown):
            told = "not defined"
            if (test, row) in found:
                average = found[test, row]
                _bar(axes, place, row, average)
                told = f"{average.mean:.3f} {marks.get((row, test), '')}".rstrip()
                if average.values < len(places):
                    told += f"\n{average.values} of {len(places)}"
            beside(axes, 1.04, place, told, fontsize=7.5, color=INK, linespacing=0.95)
        axes.axvline(CHANCE, color=MUTED, linewidth=0.9)
        axes.set_xlabel(f"mean AUROC on {TESTS[test]}")
    where = f"{results.study.factor}: {listed(places)}"
    return svg(figure, name, f"Mean AUROC of every method, {where}")


def _panels(tests: Sequence[str], shown: Sequence[Row]) -> tuple[Figure, list[Axes]]:
    """A panel for each test set, with room for text beside it; the left ones name the rows."""
    across = len(tests) if len(tests) <= _ACROSS else 1
    high = _ROW * len(shown)
    step = (WIDTH - _NAMES) / across
    figure = Figure((WIDTH, (high + _BELOW) * math.ceil(len(tests) / across) + 0.1))
    every: list[Axes] = []
    for place in range(len(tests)):
        level, column = divmod(place, across)
        bottom = figure.get_figheight() - 0.1 - level * (high + _BELOW) - high
        at = (_NAMES + column * step, bottom, step - _TEXT, high)
        axes = axes_at(figure, *at, sharex=every[0] if every else None)
        axes.set_ylim(len(shown) - 0.5, -0.5)
        names = [row_name(row, shown) if column == 0 else "" for row in shown]
        name_rows(axes, names, labelsize=8)
        axes.tick_params(axis="x", labelsize=7.5)
        axes.locator_params(axis="x", nbins=4)
        axes.spines["left"].set_visible(False)
        every.append(axes)
    return figure, every


def _bar(axes: Axes, place: int, row: Row, average: Spread) -> None:
    axes.barh(place, average.mean - CHANCE, 0.66, left=CHANCE, color=METHODS[row.method][0])
    if average.sd is not None:
        ends = [average.mean - average.sd, average.mean + average.sd]
        axes.plot(ends, [place, place], color="white", linewidth=2.2)
        axes.plot(ends, [place, place], color=INK, linewidth=1)
