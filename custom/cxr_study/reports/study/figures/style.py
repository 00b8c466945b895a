"""Which rows, scenarios and values the figures of a study show, and how they look: alike in all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cxr_study.jobs.methods import Row
from cxr_study.reports.page import svg as page
from cxr_study.reports.page.svg import STYLE
from cxr_study.reports.study.tables.cells import Ours, measure
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.papers.published_results import LOCAL, Place

METHODS: Mapping[str, tuple[str, str]] = {
    "surgical": ("#0072B2", "o"),
    "partial_loss": ("#D55E00", "s"),
    "vanilla": ("#009E73", "^"),
    "personalised": ("#CC79A7", "D"),
    "individual": ("#E69F00", "v"),
    "centralised": ("#56B4E9", "P"),
    "centralised-partial": ("#882255", "X"),
    "complete": ("#000000", "*"),
}
"""Method -> colour and marker: Okabe and Ito's, with Tol's wine for their yellow, which is faint
on white. Where colours are as dark as each other in print, markers differ."""

STRATEGIES: Mapping[str, tuple[Any, str, str]] = {
    "fedavg": ((0, (4, 1.6)), "none", "fedavg: batch norm trained"),
    "fedbn": ((0, (1, 1.2)), "bottom", "fedbn: batch norm of each site"),
    "fedbn+": ("-", "full", "fedbn+: batch norm frozen"),
    "fedbn+-samples": ((0, (6, 1, 1, 1)), "left", "fedbn+, head by samples"),
    "fedbn+-positives": ((0, (3, 1, 1, 1, 1, 1)), "right", "fedbn+, head by positives"),
}
"""Strategy -> style of the line, how far a marker is filled, and what a legend calls it."""

LOOK: dict[Any, Any] = STYLE | {
    "font.sans-serif": ["DejaVu Sans"],  # the page has its own; names of others make texts long
    "xtick.bottom": False,
    "ytick.left": False,
}
"""Settings of matplotlib for these figures."""


def rows(results: StudyResults) -> list[Row]:
    """The rows that have a finished run, in the study file's order."""
    finished = {run.row for run in results.finished}
    return [row for row in results.study.rows if row in finished]


def scenarios(results: StudyResults) -> list[str]:
    """Names of the scenarios that have a finished run, in the study file's order."""
    finished = {run.scenario for run in results.finished}
    return [scenario.name for scenario in results.study.scenarios if scenario.name in finished]


def models_tested(models: Collection[str], test: str) -> list[str]:
    """The models of a run that count on a test set, as in tables; see `cells.measure`.

    Where a site of that name has a model of its own, it is that one; otherwise all: the global one,
    or every site's.

    Args:
        models: "global", or sites that each have their own.
        test: Name of the test set.
    """
    return [test] if test in models else list(models)


def in_scenario(results: StudyResults, row: Row, test: str, scenario: str) -> Ours:
    """Mean AUROC over all classes in a scenario, as tables have it."""
    return measure(results.means, Place(scenario, row, LOCAL, test, "all"), "auroc", [scenario])


def row_name(row: Row, beside: Iterable[Row]) -> str:
    """The method, with its strategy where others beside it have the same method."""
    alone = all(other.method != row.method or other == row for other in beside)
    return row.title if alone else f"{row.title}, {row.strategy}"


def marked(row: Row) -> dict[str, Any]:
    """Settings of matplotlib for a row's markers, without a line."""
    colour, marker = METHODS[row.method]
    _, filled, _ = STRATEGIES[row.strategy]
    return {
        "color": colour,
        "linestyle": "none",
        "marker": marker,
        "markersize": 6.5 if marker == "*" else 4.6,
        "markeredgewidth": 0.9,
        "fillstyle": "full" if filled == "none" else filled,
        "markerfacecolor": "white" if filled == "none" else colour,
        "markerfacecoloralt": "white",
    }


def lined(row: Row) -> dict[str, Any]:
    """Settings of matplotlib for a row's line, without markers."""
    style, _, _ = STRATEGIES[row.strategy]
    return {"color": METHODS[row.method][0], "linestyle": style, "linewidth": 1.3}


def evenly(number: int, most: int) -> np.ndarray:
    """Which of so many to draw, at most so many, the first and the last with them; ascending."""
    return np.unique(np.linspace(0, number - 1, min(number, most)).round().astype(np.int64))


def intervals(axes: Axes, row: Row, places: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Draw a row's intervals at places along x, those that are defined, as one path."""
    known = ~np.isnan(low)
    over = np.column_stack([low, high, np.full(len(low), np.nan)])[known].ravel()
    at = np.repeat(places[known], 3)
    axes.plot(at, over, color=METHODS[row.method][0], linewidth=0.9)


def svg(figure: Figure, name: str, title: str) -> str:
    """As `page.svg.svg`, with places to a tenth of a point and markers' style once: a small one."""
    text = re.sub(r"<[^>]*>", _shortened, page.svg(figure, name, title))
    return re.sub(r"<g([^>]*)>\n((?:<use [^>]*/>\n)+)</g>", _said_once, text)


def _shortened(tag: re.Match[str]) -> str:
    turned = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag[0])
    places = re.compile(r' (?:d|x|y|transform)="[^"]*"')
    return places.sub(lambda found: re.sub(r"(\.\d)\d+", r"\1", found[0]), turned)


def _said_once(group: re.Match[str]) -> str:
    """A group of markers that look alike, which say so each."""
    style = re.compile(r' style="[^"]*"')
    looks = set(style.findall(group[2]))
    if len(looks) != 1:
        return group[0]
    return f"<g{group[1]}{looks.pop()}>\n{style.sub('', group[2])}</g>"
