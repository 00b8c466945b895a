"""AUROC class by class."""

from __future__ import annotations

import math

import matplotlib as mpl
import pandas as pd

from cxr_study.evaluation.seed_intervals import interval
from cxr_study.jobs.methods import Row
from cxr_study.reports.page import drawing as page
from cxr_study.reports.study.figures import style
from cxr_study.reports.study.figures.style import LOOK, marked, svg
from cxr_study.reports.study.tables.layouts import TESTS
from cxr_study.studies.analysis.study_results import StudyResults

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
    sets and in all scenarios: the class that the first row predicts best over all of them is on
    top. Local models: see `style.models_tested`.
    """
    scores = results.scores
    chosen = scores[(scores["scenario"] == scenario) & (scores["test"] == test)]
    if chosen["auroc"].isna().all():
        return None
    values = pd.DataFrame({row: _mean(chosen, row, test) for row in style.rows(results)})
    values = values.dropna(axis=1, how="all")
    shown = list(values)
    known = scores[(scores["method"] == shown[0].method)].groupby("class")["auroc"].mean()
    values = values.loc[sorted(values.index, key=lambda name: (-known.get(name, 0.0), name))]
    headings, places = _lines(values, chosen.groupby("class")["shared"].mean())
    lines = len(headings) + len(places)
    apart = min(_APART, _MOST / (len(shown) + 2))
    tall = max(_LEAST, apart * (len(shown) + 2))
    figure, (axes,) = style.panels([""], shown, height=tall * lines)
    figure.subplots_adjust(left=0.33)
    axes.set_ylim(lines - 0.5, -0.5)
    for number, row in enumerate(shown):
        shift = apart / tall * (number - (len(shown) - 1) / 2)
        of_row = values.loc[list(places), row]
        at = [place + shift for place in places.values()]
        axes.plot(of_row, at, **marked(row))
        for class_name, y in zip(places, at, strict=True):
            ends = _ends(chosen, row, test, class_name)
            if ends is not None:
                axes.plot(ends, [y, y], color=marked(row)["color"], linewidth=0.8, zorder=1)
    axes.set_xlim(math.floor(scores["auroc"].min() * 20) / 20, 1.0)
    for heading, place in headings.items():
        page.beside(axes, -0.48, place, heading, color=page.INK, fontsize=8, fontweight="bold")
    for number, (class_name, place) in enumerate(places.items()):
        if number % 2 == 0:
            axes.axhspan(place - 0.5, place + 0.5, color="#F1F4F7", linewidth=0, zorder=0)
        if values.loc[class_name].isna().all():
            looks = {"color": page.MUTED, "fontsize": 8, "fontstyle": "italic"}
            page.beside(axes, 0.01, place, "not defined", **looks)
    page.name_rows(axes, list(map(page.short, places)), list(places.values()), labelsize=8)
    axes.set_xlabel(f"AUROC on {TESTS[test]}")
    return svg(figure, name, f"AUROC of each class on {TESTS[test]}, {scenario}")


def _mean(scores: pd.DataFrame, row: Row, test: str) -> pd.Series:
    """AUROC of every class: the mean over seeds and over the models that count."""
    of_row = scores[(scores["method"] == row.method) & (scores["strategy"] == row.strategy)]
    models = style.models_tested(set(of_row["model"]), test)
    counted = of_row[of_row["model"].isin(models)]
    return counted.groupby("class")["auroc"].mean()


def _ends(scores: pd.DataFrame, row: Row, test: str, name: str) -> tuple[float, float] | None:
    """Ends of the interval over seeds of a class's AUROC; None of one seed."""
    of_row = scores[(scores["method"] == row.method) & (scores["strategy"] == row.strategy)]
    models = style.models_tested(set(of_row["model"]), test)
    counted = of_row[of_row["model"].isin(models) & (of_row["class"] == name)]
    found = interval(counted.groupby("seed")["auroc"].mean().dropna().tolist())
    if found is None or found.low is None or found.high is None:
        return None
    return found.low, found.high


def _lines(values: pd.DataFrame, shared: pd.Series) -> tuple[dict[str, int], dict[str, int]]:
    """Line of each heading, and of each class below it; `shared`: in which share of the seeds."""
    headings: dict[str, int] = {}
    places: dict[str, int] = {}
    kinds = {name: {1.0: _ALL, 0.0: _SOME}.get(shared[name], _EITHER) for name in values.index}
    for name in sorted(kinds, key=lambda name: (_ALL, _SOME, _EITHER).index(kinds[name])):
        headings.setdefault(kinds[name], len(headings) + len(places))
        places[name] = len(headings) + len(places)
    return headings, places
