"""Panels side by side, under a legend of methods and strategies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cxr_study.jobs.methods import TITLES, Row
from cxr_study.reports.page.axes import headed
from cxr_study.reports.page.svg import MUTED, WIDTH
from cxr_study.reports.study.figures.style import STRATEGIES, lined, marked

ACROSS = 3
"""Panels side by side at most."""

_LEFT, _RIGHT = 0.125, 0.985  # widths of the figure
_LEGEND, _ABOVE, _BETWEEN = 0.165, 0.3, 0.56  # inches; of a legend a line


def panels(
    titles: Sequence[str], shown: Sequence[Row], *, height: float, below: float = 0.42
) -> tuple[Figure, list[Axes]]:
    """Panels with common axes, under a legend of methods and strategies.

    Args:
        titles: One per panel, or "".
        shown: Rows in the legend.
        height: Of a panel, inches.
        below: Room below the lowest ones, inches. Default 0.42, for numbers and a line of text.
    """
    handles = _legend(shown)
    across = min(ACROSS, len(titles))
    down = math.ceil(len(titles) / across)
    above = (_ABOVE if any(titles) else 0.1) + _LEGEND * math.ceil(len(handles) / 2)
    tall = above + down * height + (down - 1) * _BETWEEN + below
    figure = Figure((WIDTH, tall))
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    figure.subplots_adjust(
        left=_LEFT, right=_RIGHT, top=1 - above / tall, bottom=below / tall, wspace=0.08,
        hspace=_BETWEEN / height,
    )  # fmt: skip
    if handles:
        figure.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False,
            borderaxespad=0.0, borderpad=0.0, fontsize=8, handlelength=2.4, labelspacing=0.35,
        )  # fmt: skip
    every = list(grid.flat)
    for axes in every[len(titles) :]:
        axes.remove()
    for axes, title in zip(every, titles, strict=False):
        headed(axes, title, size=8.5, pad=4)
        axes.tick_params(labelbottom=True, labelsize=7.5)
    return figure, every[: len(titles)]


def _legend(shown: Sequence[Row]) -> list[Line2D]:
    strategies = [name for name in STRATEGIES if name in {row.strategy for row in shown}]
    handles = []
    for method in dict.fromkeys(row.method for row in shown):
        handles.append(Line2D([], [], label=TITLES[method], **_drawn(Row(method, "fedbn+"))))
    if len(strategies) > 1:
        for name in strategies:
            looks = _drawn(Row("surgical", name)) | {"color": MUTED, "markeredgecolor": MUTED}
            if name != "fedavg":
                looks["markerfacecolor"] = MUTED
            handles.append(Line2D([], [], label=STRATEGIES[name][2], **looks))
    return handles


def _drawn(row: Row) -> dict[str, Any]:
    return marked(row) | lined(row)


def label_below(figure: Figure, text: str) -> None:
    """Write what the horizontal axes of all panels are."""
    x, y = (_LEFT + _RIGHT) / 2, 0.06 / figure.get_figheight()
    figure.supxlabel(text, x=x, y=y, va="bottom", fontsize=8.5, color=MUTED)
