"""AUROC class by class."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd

from cxr_studies.analysis.seed_intervals import interval
from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.plan.row import Row
from cxr_studies.report.figures import style
from cxr_studies.report.figures.style import LOOK, marked
from cxr_studies.report.tables.layouts import TESTS
from cxr_study.reports.page import drawing as page
from cxr_study.reports.page.drawing import svg

_ALL, _SOME = "Labelled by all sites", "Labelled by some sites only"
_EITHER = "One or the other, depending on the seed"
_APART = 0.042  # inches from row to row within a class, at most
_LEAST, _MOST = 0.24, 0.46  # inches of a class


@mpl.rc_context(LOOK)
def class_dots(results: StudyResults, scenario: str, test: str, name: str) -> str | None:
    """Draw the AUROC of each class on a test set: a line per class, a point per row.

    Points are means over seeds with 95 % t intervals, below each other in the order of the legend;
    a model without the class has none. Shared classes, which all sites label, come first; then the
    others, and those that are shared with some seeds only. Order and axis are the same on all test
    sets and in all scenarios: the class that the study's first row predicts best over all of them
    is on top, and the lowest AUROC of any run is on the axis; an interval beyond it is cut. Local
    models: see `style.models_tested`.
    """
    scores = results.scores
    chosen = scores[(scores["scenario"] == scenario) & (scores["test"] == test)]
    if chosen["auroc"].isna().all():
        return None
    rows = style.rows(results)
    seeds = {row: _by_seed(_of(chosen, row), test) for row in rows}
    values = pd.DataFrame({row: found.mean(axis=1) for row, found in seeds.items()})
    values = values.dropna(axis=1, how="all")
    shown = list(values)
    known = _of(scores, rows[0]).groupby("class")["auroc"].mean().reindex(values.index)
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
        axes.plot(values.loc[list(places), row], at, **marked(row))
        ends = _ends(seeds[row].reindex(list(places)))
        axes.hlines(at, *ends, color=marked(row)["color"], linewidth=0.8, zorder=1)
    axes.set_xlim(math.floor(scores["auroc"].min() * 20) / 20, 1.0)
    for heading, place in headings.items():
        page.beside(axes, 0.01, place, heading, color=page.INK, fontsize=8, fontweight="bold")
    for number, (class_name, place) in enumerate(places.items()):
        if number % 2 == 0:
            axes.axhspan(place - 0.5, place + 0.5, color="#F1F4F7", linewidth=0, zorder=0)
        if values.loc[class_name].isna().all():
            looks = {"color": page.MUTED, "fontsize": 8, "fontstyle": "italic"}
            page.beside(axes, 0.01, place, "not defined", **looks)
    page.name_rows(axes, list(map(page.short, places)), list(places.values()), labelsize=8)
    axes.set_xlabel(f"AUROC on {TESTS[test]}")
    return svg(figure, name, f"AUROC of each class on {TESTS[test]}, {scenario}")


def _of(scores: pd.DataFrame, row: Row) -> pd.DataFrame:
    return scores[(scores["method"] == row.method) & (scores["strategy"] == row.strategy)]


def _by_seed(scores: pd.DataFrame, test: str) -> pd.DataFrame:
    """AUROC of every class with every seed: the mean over the models that count."""
    models = style.models_tested(set(scores["model"]), test)
    counted = scores[scores["model"].isin(models)]
    return counted.pivot_table(index="class", columns="seed", values="auroc", dropna=False)


def _ends(seeds: pd.DataFrame) -> np.ndarray:
    """Low and high ends of each class's interval over seeds, shape (2, n); NaN of one seed."""
    found = [interval(values.dropna().tolist()) for _, values in seeds.iterrows()]
    ends = [(None, None) if each is None else (each.low, each.high) for each in found]
    return np.array(ends, dtype=float).T


def _lines(values: pd.DataFrame, shared: pd.Series) -> tuple[dict[str, int], dict[str, int]]:
    """Line of each heading, and of each class below it; `shared`: in which share of the seeds."""
    headings: dict[str, int] = {}
    places: dict[str, int] = {}
    kinds = {name: {1.0: _ALL, 0.0: _SOME}.get(shared[name], _EITHER) for name in values.index}
    for name in sorted(kinds, key=lambda name: (_ALL, _SOME, _EITHER).index(kinds[name])):
        headings.setdefault(kinds[name], len(headings) + len(places))
        places[name] = len(headings) + len(places)
    return headings, places
