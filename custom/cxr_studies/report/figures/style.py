"""Common style of a study's figures: rows that are shown, colors, panels and legends."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.plan.row import SOLO_STRATEGIES, TITLES, Row
from cxr_studies.plan.run_folder import SERVER
from cxr_study.jobs.methods import BATCH_NORM
from cxr_study.reports.page import drawing as page

METHODS: Mapping[str, tuple[str, str]] = defaultdict(lambda: ("#777777", "h")) | {
    "surgical": ("#0072B2", "o"),
    "partial_loss": ("#D55E00", "s"),
    "vanilla": ("#009E73", "^"),
    "personalised": ("#CC79A7", "D"),
    "individual": ("#E69F00", "v"),
    "centralised": ("#56B4E9", "P"),
    "centralised-partial": ("#882255", "X"),
    "complete": ("#000000", "*"),
}
"""Method -> color and marker, the same for all methods of packages: Okabe and Ito's colors, with
Tol's wine for their yellow, which is faint on white. Where colors are equally dark in print,
markers differ."""

STRATEGIES: Mapping[str, tuple[Any, str]] = {
    "fedavg": ((0, (4, 1.6)), "none"),
    "fedbn": ((0, (1, 1.2)), "bottom"),
    "fedbn+": ("-", "full"),
    "fixbn": ((0, (6, 1, 1, 1)), "left"),
}
"""Strategy -> line style, and how far a marker is filled."""

_OWN_STRATEGY = ((0, (2, 1, 1, 1)), "right")  # of any that an installed package offers

VARIANTS: Mapping[str, tuple[str, Any, str]] = {
    "samples": ("", (0, (6, 1, 1, 1)), "left"),
    "positives": ("", (0, (3, 1, 1, 1, 1, 1)), "right"),
    "refit": ("#332288", None, "left"),
    "average": ("#117733", None, "right"),
    "momentum": ("#999933", None, "right"),
    "soft": ("#DDAA33", None, "left"),
    "balanced": ("#44AA99", None, "right"),
    "focal": ("#AA4499", None, "left"),
    "extras": ("#000000", None, "left"),
    "full": ("#000000", None, "left"),
    "full-momentum": ("#999933", None, "left"),
    "slow": ("#88CCEE", None, "left"),
    "full-slow": ("#88CCEE", None, "left"),
    "fast": ("#CC6677", None, "left"),
    "small-batches": ("#AA4499", None, "right"),
    "large-batches": ("#44AA99", None, "right"),
    "full-large-batches": ("#44AA99", None, "right"),
    "columns": ("#DDCC77", None, "right"),
}
"""Variant of a shipped study -> color ("": the method's), line style (None: the strategy's), how
far a marker is filled: Tol's muted and high-contrast colors."""

_OTHER_VARIANT = ("", (0, (8, 2)), "top")

RC_PARAMS: dict[Any, Any] = page.STYLE | {
    "font.sans-serif": ["DejaVu Sans"],  # the page has its own; names of others make texts long
    "xtick.bottom": False,
    "ytick.left": False,
}
"""Settings of matplotlib for these figures."""

ACROSS = 3
"""Largest number of panels side by side."""

_LEGEND, _AROUND = 0.165, 0.56  # inches; of a legend a line, and of titles and numbers of a panel


def rows(results: StudyResults) -> list[Row]:
    """The rows that have a finished run, in the study file's order."""
    finished = {run.row for run in results.finished}
    return [row for row in results.study.rows if row in finished]


def scenarios(results: StudyResults) -> list[str]:
    """Names of the scenarios that have a finished run, in the study file's order."""
    finished = {run.scenario for run in results.finished}
    return [scenario.name for scenario in results.study.scenarios if scenario.name in finished]


def models_tested(models: Collection[str], test: str) -> list[str]:
    """The models whose results are shown on a test set, as in tables.

    Args:
        models: Names of a run's models.
        test: Name of the test set.

    Returns:
        That of the tested site, or all but `SERVER` where it has none.
    """
    return [test] if test in models else [model for model in models if model != SERVER]


def row_name(row: Row, others: Iterable[Row], separator: str = ", ") -> str:
    """Name of a row in prose and figures.

    Args:
        row: The row.
        others: Rows that are shown with it.
        separator: Between method and strategy.

    Returns:
        The method, with the strategy in words where another row has the same method.

    Example:
        >>> row_name(Row("surgical", "fedbn+"), [Row("surgical", "fedavg")])
        'Surgical aggregation, batch norm frozen'
    """
    alone = all(other.method != row.method or other == row for other in others)
    return row.title if alone else f"{row.title}{separator}{row.batch_norm}"


def _appearance(row: Row) -> tuple[str, Any, str]:
    """Color, line style, and how far a marker is filled."""
    line, filled = STRATEGIES.get(row.job_strategy, _OWN_STRATEGY)
    colour = METHODS[row.method][0]
    if not row.variant:
        return colour, line, filled
    own, own_line, filled = VARIANTS.get(row.variant, _OTHER_VARIANT)
    return own or colour, own_line or line, filled


def marker_style(row: Row) -> dict[str, Any]:
    """Settings of matplotlib for a row's markers, without a line."""
    marker = METHODS[row.method][1]
    colour, _, filled = _appearance(row)
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


def line_style(row: Row) -> dict[str, Any]:
    """Settings of matplotlib for a row's line, without markers."""
    colour, style, _ = _appearance(row)
    return {"color": colour, "linestyle": style, "linewidth": 1.3}


def evenly_spaced(number: int, most: int) -> np.ndarray:
    """Indices spread evenly from the first to the last.

    Args:
        number: How many there are.
        most: How many are wanted at most.

    Returns:
        int64, ascending; all of them where they are no more than `most`.
    """
    return np.unique(np.linspace(0, number - 1, min(number, most)).round().astype(np.int64))


def panels(
    titles: Sequence[str],
    shown: Sequence[Row],
    *,
    height: float,
    most_across: int = ACROSS,
    below: str = "",
) -> tuple[Figure, list[Axes]]:
    """A panel per title (or "") with common axes, under a legend of the rows that are shown.

    Args:
        titles: Of the panels.
        shown: Rows of the legend; none: no legend.
        height: Of a panel, inches; approximate, as labels around it take their room first.
        most_across: Largest number of panels side by side.
        below: Name of the horizontal axes of all panels.

    Returns:
        The figure, and the axes of each panel.
    """
    handles = _legend(shown)
    across = min(most_across, len(titles))
    down = math.ceil(len(titles) / across)
    tall = down * (height + _AROUND) + _LEGEND * math.ceil(len(handles) / 2)
    figure = Figure((page.WIDTH, tall), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    if handles:
        figure.legend(
            handles=handles, loc="outside upper left", ncols=2, frameon=False, borderpad=0.0,
            fontsize=8, handlelength=2.4, labelspacing=0.35,
        )  # fmt: skip
    figure.supxlabel(below, fontsize=8.5, color=page.MUTED)
    every = list(grid.flat)
    for axes in every[len(titles) :]:
        axes.remove()
    for axes, title in zip(every, titles, strict=False):
        page.add_heading(axes, title, size=8.5, pad=4)
        axes.tick_params(labelbottom=True, labelsize=7.5)
    return figure, every[: len(titles)]


def _legend(shown: Sequence[Row]) -> list[Line2D]:
    """A handle for each method, for each strategy where there are several, and each variant."""
    methods = dict.fromkeys(row.method for row in shown)
    drawn: list[tuple[str, Row, dict[str, Any]]]
    drawn = [(TITLES[method], Row(method, "fedbn+"), {}) for method in methods]
    names = {row.job_strategy for row in shown}
    strategies = [*(name for name in STRATEGIES if name in names), *sorted(names - {*STRATEGIES})]
    for name in strategies if len(strategies) > 1 else ():
        inside = {} if name == "fedavg" else {"markerfacecolor": page.MUTED}
        looks = {"color": page.MUTED, "markeredgecolor": page.MUTED} | inside
        federated = any(row.federated and row.job_strategy == name for row in shown)
        words = (BATCH_NORM if federated else SOLO_STRATEGIES).get(name, "own strategy")
        drawn.append((f"{words} ({name})", Row("surgical", name), looks))
    drawn += [(row.batch_norm, row, {}) for row in shown if row.variant]
    return [
        Line2D([], [], label=label, **marker_style(row) | line_style(row) | looks)
        for label, row, looks in drawn
    ]
