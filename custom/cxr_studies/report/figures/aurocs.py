"""AUROCs: means by scenario and on average (the papers' Figures 6 to 8), and class by class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cxr_studies.analysis.intervals_and_tests import interval
from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.papers.published_results import LOCAL, Place
from cxr_studies.plan.row import Row
from cxr_studies.report.figures import style
from cxr_studies.report.figures.style import METHODS, RC_PARAMS, line_style, marker_style
from cxr_studies.report.tables.layouts import TESTS
from cxr_studies.report.tables.tables import Ours, measure
from cxr_study.common.wording import join_names
from cxr_study.reports.page import drawing as page
from cxr_study.reports.page.drawing import svg

CHANCE = 0.5
"""AUROC at which bars begin: that of random scores."""

_LONG = 4  # characters of a scenario's name that fit under the axis; longer ones are turned
_AXIS = 0.02  # of AUROC, from end to end of the axis
_SIDE_BY_SIDE = 0.5  # of the way from scenario to scenario, for the markers of all rows
_ACROSS = 2  # panels of bars side by side at most; more are below each other
_ROW = 0.3  # inches of a bar

_ALL, _SOME = "Labelled by all sites", "Labelled by some sites only"
_EITHER = "One or the other, depending on the seed"
_APART = 0.042  # inches from row to row within a class, at most
_LEAST, _MOST = 0.24, 0.46  # inches of a class


@mpl.rc_context(RC_PARAMS)
def auroc_by_scenario(results: StudyResults, name: str) -> str | None:
    """Draw the mean AUROC over scenarios: a panel per test set, a line per row.

    Markers are means over seeds, those of rows side by side; error bars are 95 % t intervals, with
    two seeds or more, cut off where they extend far beyond all means. "complete" is a horizontal
    dashed line where its training is the same in every scenario. Local models: see
    `style.models_tested`.

    Args:
        results: Of the study.
        name: See `figures`.

    Returns:
        None with fewer than two scenarios, or where no mean is defined.
    """
    places = style.scenarios(results)
    lines = {}
    for test, row in product(results.study.tests, style.rows(results)):
        every = [_mean(results, row, test, place) for place in places]
        line = np.array([(ours.value, ours.low, ours.high) for ours in every], float)
        if np.isfinite(line[:, 0]).any():
            lines[test, row] = line  # mean and ends of its interval in each scenario
    if len(places) < 2 or not lines:
        return None
    tests, shown = _of(results, lines)
    turned: dict[str, Any] = {}
    if max(map(len, places)) > _LONG:
        turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    titles = [TESTS[test] for test in tests]
    figure, every_panel = style.panels(titles, shown, height=2.2, below=results.study.factor)
    panel_of = dict(zip(tests, every_panel, strict=True))
    varied = {r for (_, r), line in lines.items() if np.nanmin(line[:, 0]) < np.nanmax(line[:, 0])}
    moved = [row for row in shown if row.method != "complete" or row in varied]
    step = min(0.08, _SIDE_BY_SIDE / max(1, len(moved) - 1))
    for (test, row), line in lines.items():
        if row in moved:
            _line(panel_of[test], row, step * (moved.index(row) - (len(moved) - 1) / 2), line)
        else:
            _level(panel_of[test], row, float(np.nanmean(line[:, 0])))
    every_panel[0].set_ylim(*_ends(np.concatenate(list(lines.values()))))
    for axes in every_panel:
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_xticks(range(len(places)), map(page.short, places), **turned)
        axes.grid(axis="x", visible=False)
        axes.yaxis.set_major_locator(MaxNLocator(6))
    every_panel[0].set_ylabel("mean AUROC, all classes")
    return svg(figure, name, f"Mean AUROC by {results.study.factor}, on each test set")


@mpl.rc_context(RC_PARAMS)
def bars(
    results: StudyResults, places: Sequence[str], marks: Mapping[tuple[Row, str], str], name: str
) -> str | None:
    """Draw the average over scenarios of the mean AUROC: a panel per test set, a bar per row.

    Means over seeds are averaged; the thin line is the standard deviation over scenarios, as in the
    papers. If a mean is defined in some scenarios only, the average is over those, and their number
    is printed next to it. Local models: see `style.models_tested`.

    Args:
        results: Of the study.
        places: Names of the scenarios; a single one has no standard deviation.
        marks: (row, test set) -> mark, see `intervals_and_tests.significance_mark`.
        name: See `figures`.

    Returns:
        None where no mean is defined.
    """
    found: dict[tuple[str, Row], pd.Series] = {}
    for test, row in product(results.study.tests, style.rows(results)):
        means = [_mean(results, row, test, place).value for place in places]
        if defined := [mean for mean in means if mean is not None]:
            found[test, row] = pd.Series(defined)
    if not found:
        return None
    tests, shown = _of(results, found)
    across = _ACROSS if len(tests) <= _ACROSS else 1
    titles = [f"mean AUROC on {TESTS[test]}" for test in tests]
    figure, panels = style.panels(titles, (), height=_ROW * len(shown), most_across=across)
    names = [style.row_name(row, shown, "\n") for row in shown]
    for axes in panels:
        page.name_rows(axes, names, labelsize=8)
    panels[0].set_ylim(len(shown) - 0.5, -0.5)
    panels[0].locator_params(axis="x", nbins=4)
    for axes, test in zip(panels, tests, strict=True):
        for place, row in enumerate(shown):
            text = "not defined"
            if (test, row) in found:
                average, sd = found[test, row].mean(), found[test, row].std()
                length = average - CHANCE
                axes.barh(place, length, 0.66, left=CHANCE, color=METHODS[row.method][0])
                if not np.isnan(sd):
                    ends = [average - sd, average + sd]
                    axes.plot(ends, [place, place], color="white", linewidth=2.2)
                    axes.plot(ends, [place, place], color=page.INK, linewidth=1)
                text = f"{average:.3f} {marks.get((row, test), '')}".rstrip()
                if len(found[test, row]) < len(places):
                    text += f"\n{len(found[test, row])} of {len(places)}"
            page.write_at_row(
                axes, 1.04, place, text, fontsize=7.5, color=page.INK, linespacing=0.95
            )
        axes.axvline(CHANCE, color=page.MUTED, linewidth=0.9)
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
    where = f"{results.study.factor}: {join_names(places)}"
    return svg(figure, name, f"Mean AUROC of every method, {where}")


def _mean(results: StudyResults, row: Row, test: str, scenario: str) -> Ours:
    """Mean AUROC over all classes in a scenario, as in the tables."""
    return measure(results.means, Place(scenario, row, LOCAL, test, "all"), "auroc", [scenario])


def _of(results: StudyResults, found: Iterable[tuple[str, Row]]) -> tuple[list[str], list[Row]]:
    """The test sets and rows that have figures, in order."""
    tests, drawn = map(set, zip(*found, strict=True))
    shown = [row for row in style.rows(results) if row in drawn]
    return [test for test in results.study.tests if test in tests], shown


def _ends(figures: np.ndarray) -> tuple[float, float]:
    """Ends of the axis: all means fit, intervals up to the range of the means beyond them."""
    lowest, highest = np.nanmin(figures[:, 0]), np.nanmax(figures[:, 0])
    room = max(highest - lowest, _AXIS)
    low = max(np.nanmin(figures[:, :2]), lowest - room)
    high = min(np.nanmax(figures[:, ::2]), highest + room)
    margin = max(high - low, _AXIS) / 20
    return low - margin, min(high + margin, 1.0)


def _level(axes: Axes, row: Row, level: float) -> None:
    """The mean of all scenarios, which are the same runs."""
    axes.axhline(level, **line_style(row) | {"linestyle": (0, (6, 3)), "zorder": 1.5})
    axes.plot(
        [1.0], [level], clip_on=False, transform=axes.get_yaxis_transform(), **marker_style(row)
    )


def _line(axes: Axes, row: Row, shift: float, line: np.ndarray) -> None:
    """Means, joined, and their intervals as one path."""
    places = np.arange(len(line)) + shift
    axes.plot(places, line[:, 0], **marker_style(row) | line_style(row))
    known = ~np.isnan(line[:, 1])
    ends = np.column_stack([line[:, 1:], np.full(len(line), np.nan)])[known].ravel()
    axes.plot(np.repeat(places[known], 3), ends, color=METHODS[row.method][0], linewidth=0.9)


@mpl.rc_context(RC_PARAMS)
def class_dots(results: StudyResults, scenario: str, test: str, name: str) -> str | None:
    """Draw the AUROC of each class on a test set: a line per class, a point per row.

    Points are means over seeds with 95 % t intervals, below each other in the order of the legend;
    a model without the class has none. Shared classes, which all sites label, come first; then the
    others, and those that are shared with some seeds only. Order and axis are the same on all test
    sets and in all scenarios: the class that the study's first row predicts best over all of them
    is on top, and the lowest AUROC of any run is on the axis; an interval beyond it is cut. Local
    models: see `style.models_tested`.

    Args:
        results: Of the study.
        scenario: Name of the scenario.
        test: Name of the test set.
        name: See `figures`.

    Returns:
        None where no AUROC is defined.
    """
    scores = results.scores
    chosen = scores[(scores["scenario"] == scenario) & (scores["test"] == test)]
    if chosen["auroc"].isna().all():
        return None
    rows = style.rows(results)
    seeds = {row: _by_seed(_of_row(chosen, row), test) for row in rows}
    values = pd.DataFrame({row: found.mean(axis=1) for row, found in seeds.items()})
    values = values.dropna(axis=1, how="all")
    shown = list(values)
    known = _of_row(scores, rows[0]).groupby("class")["auroc"].mean().reindex(values.index)
    values = values.loc[known.sort_values(ascending=False, kind="stable").index]
    headings, places = _lines(values, chosen.groupby("class")["shared"].mean())
    lines = len(headings) + len(places)
    apart = min(_APART, _MOST / (len(shown) + 2))
    tall = max(_LEAST, apart * (len(shown) + 2))
    figure, (axes,) = style.panels([""], shown, height=tall * lines)
    axes.set_ylim(lines - 0.5, -0.5)
    for number, row in enumerate(shown):
        shift = apart / tall * (number - (len(shown) - 1) / 2)
        at = [place + shift for place in places.values()]
        axes.plot(values.loc[list(places), row], at, **marker_style(row))
        ends = _class_ends(seeds[row].reindex(list(places)))
        axes.hlines(at, *ends, color=marker_style(row)["color"], linewidth=0.8, zorder=1)
    axes.set_xlim(math.floor(scores["auroc"].min() * 20) / 20, 1.0)
    for heading, place in headings.items():
        page.write_at_row(axes, 0.01, place, heading, color=page.INK, fontsize=8, fontweight="bold")
    for number, (class_name, place) in enumerate(places.items()):
        if number % 2 == 0:
            axes.axhspan(place - 0.5, place + 0.5, color="#F1F4F7", linewidth=0, zorder=0)
        if values.loc[class_name].isna().all():
            style_of_text = {"color": page.MUTED, "fontsize": 8, "fontstyle": "italic"}
            page.write_at_row(axes, 0.01, place, "not defined", **style_of_text)
    page.name_rows(axes, list(map(page.short, places)), list(places.values()), labelsize=8)
    axes.set_xlabel(f"AUROC on {TESTS[test]}")
    return svg(figure, name, f"AUROC of each class on {TESTS[test]}, {scenario}")


def _of_row(scores: pd.DataFrame, row: Row) -> pd.DataFrame:
    return scores[(scores["method"] == row.method) & (scores["strategy"] == row.strategy)]


def _by_seed(scores: pd.DataFrame, test: str) -> pd.DataFrame:
    """AUROC of every class (rows) with every seed (columns): the mean over the tested models."""
    models = style.models_tested(set(scores["model"]), test)
    counted = scores[scores["model"].isin(models)]
    return counted.pivot_table(index="class", columns="seed", values="auroc", dropna=False)


def _class_ends(seeds: pd.DataFrame) -> np.ndarray:
    """Low and high ends of each class's interval over seeds, shape (2, n); NaN of one seed."""
    found = [interval(values.dropna().tolist()) for _, values in seeds.iterrows()]
    ends = [(None, None) if each is None else (each.low, each.high) for each in found]
    return np.array(ends, dtype=float).T


def _lines(values: pd.DataFrame, shared: pd.Series) -> tuple[dict[str, int], dict[str, int]]:
    """Line of each heading, and of each class below it; `shared`: share of seeds that share it."""
    headings: dict[str, int] = {}
    places: dict[str, int] = {}
    kinds = {name: {1.0: _ALL, 0.0: _SOME}.get(shared[name], _EITHER) for name in values.index}
    for name in sorted(kinds, key=lambda name: (_ALL, _SOME, _EITHER).index(kinds[name])):
        headings.setdefault(kinds[name], len(headings) + len(places))
        places[name] = len(headings) + len(places)
    return headings, places
