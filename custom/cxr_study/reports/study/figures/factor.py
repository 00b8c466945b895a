"""How AUROC depends on what a study varies, as the papers' Figure 6 shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cxr_study.jobs.methods import Row
from cxr_study.reports.page.svg import short
from cxr_study.reports.study.figures.panels import label_below, panels
from cxr_study.reports.study.figures.style import (
    LOOK,
    in_scenario,
    intervals,
    lined,
    marked,
    rows,
    scenarios,
    svg,
)
from cxr_study.reports.study.tables.layouts import TESTS
from cxr_study.studies.analysis.study_results import StudyResults

_LONG = 4  # characters of a scenario's name that fit under the axis; longer ones are turned
_LETTER = 0.032  # inches that each takes then
_LEAST = 0.02  # of AUROC, from end to end of the axis
_APART = 0.5  # of the way from scenario to scenario, for the markers of all rows


@mpl.rc_context(LOOK)
def auroc_by_scenario(results: StudyResults, name: str) -> str | None:
    """Draw the mean AUROC over all classes in every scenario: a panel per test set, a line per row.

    Markers are means over seeds, those of rows side by side; error bars are 95 % t intervals, where
    there are two seeds or more, cut off where they go far beyond all means. "complete", whose
    training is the same in every scenario, is a horizontal dashed line. Where sites have models of
    their own, see `looks.models_tested`.

    Args:
        results: Of the study.
        name: Of the element; see `page.svg.svg`.

    Returns:
        None with fewer than two scenarios, or where no mean is defined.
    """
    places = scenarios(results)
    found = {
        (test, row): _figures(results, row, test, places)
        for test in results.study.tests
        for row in rows(results)
    }
    found = {key: line for key, line in found.items() if np.isfinite(line[:, 0]).any()}
    if len(places) < 2 or not found:
        return None
    tests = list(dict.fromkeys(test for test, _ in found))
    shown = [row for row in rows(results) if row in {row for _, row in found}]
    shifts = _shifts([row for row in shown if row.method != "complete"])
    longest, below = max(map(len, places)), 0.42
    turned: dict[str, Any] = {}
    if longest > _LONG:
        below += _LETTER * longest
        turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    figure, every = panels([TESTS[test] for test in tests], shown, height=2.2, below=below)
    panel_of = dict(zip(tests, every, strict=True))
    for (test, row), line in found.items():
        if row in shifts:
            _draw(panel_of[test], row, shifts[row], line)
        else:
            _level(panel_of[test], row, line)
    every[0].set_ylim(*_ends(np.concatenate(list(found.values()))))
    for axes in every:
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_xticks(range(len(places)), map(short, places), **turned)
        axes.grid(axis="x", visible=False)
        axes.yaxis.set_major_locator(MaxNLocator(6))
    every[0].set_ylabel("mean AUROC, all classes")
    label_below(figure, results.study.factor)
    return svg(figure, name, f"Mean AUROC by {results.study.factor}, on each test set")


def _figures(results: StudyResults, row: Row, test: str, places: Sequence[str]) -> np.ndarray:
    """Mean and ends of its interval in each scenario, shape (scenarios, 3); NaN: not defined."""
    every = [in_scenario(results, row, test, place) for place in places]
    return np.array([(ours.value, ours.low, ours.high) for ours in every], float)


def _shifts(beside: Sequence[Row]) -> dict[Row, float]:
    """How far each row is moved along the axis."""
    step = min(0.08, _APART / max(1, len(beside) - 1))
    return {row: step * (place - (len(beside) - 1) / 2) for place, row in enumerate(beside)}


def _ends(figures: np.ndarray) -> tuple[float, float]:
    """Ends of the axis: with all means, and with intervals up to as far beyond as those reach."""
    lowest, highest = np.nanmin(figures[:, 0]), np.nanmax(figures[:, 0])
    room = max(highest - lowest, _LEAST)
    low = max(np.nanmin(figures[:, :2]), lowest - room)
    high = min(np.nanmax(figures[:, ::2]), highest + room)
    margin = max(high - low, _LEAST) / 20
    return low - margin, min(high + margin, 1.0)


def _level(axes: Axes, row: Row, line: np.ndarray) -> None:
    """The mean of all scenarios, which are the same runs."""
    level = float(np.nanmean(line[:, 0]))
    axes.axhline(level, **lined(row) | {"linestyle": (0, (6, 3)), "zorder": 1.5})
    axes.plot([1.0], [level], clip_on=False, transform=axes.get_yaxis_transform(), **marked(row))


def _draw(axes: Axes, row: Row, shift: float, line: np.ndarray) -> None:
    """Means, joined, with their intervals."""
    places = np.arange(len(line)) + shift
    means, low, high = line.T
    axes.plot(places, means, **marked(row) | lined(row))
    intervals(axes, row, places, low, high)
