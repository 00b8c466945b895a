"""What the figures of all pages do with their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from cxr_study.reports.page.svg import INK, LOCAL

STRIPES: dict[str, Any] = {"facecolor": "#F3D9B8", "edgecolor": LOCAL, "hatch": "////"}
"""Settings of matplotlib for a striped area."""


def axes_at(
    figure: Figure, left: float, bottom: float, width: float, height: float, **more: Any
) -> Axes:
    """Add axes at a place that is given in inches."""
    wide, tall = figure.get_size_inches()
    return figure.add_axes((left / wide, bottom / tall, width / wide, height / tall), **more)


def name_rows(
    axes: Axes,
    names: Sequence[str],
    at: Sequence[float] | None = None,
    *,
    grid: bool = False,
    **looks: Any,
) -> None:
    """Name rows beside the vertical axis, without ticks.

    Args:
        axes: Whose.
        names: Of the rows.
        at: Their places. Default: 0, 1, ...
        grid: Whether each has a line. Default False.
        looks: Of the names; see `Axes.tick_params`.
    """
    axes.set_yticks((range(len(names)) if at is None else at) if names else [], names)
    axes.tick_params(axis="y", length=0, labelcolor=INK, **looks)
    axes.grid(axis="y", visible=grid)


def in_percent(axis: Axis) -> None:
    """Write the numbers of an axis as percentages."""
    axis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))


def headed(axes: Axes, text: str, colour: str = INK, size: float = 9, **more: Any) -> None:
    """Write a panel's heading above its left end."""
    axes.set_title(text, loc="left", fontsize=size, fontweight="bold", color=colour, **more)


def legend_above(axes: Axes, left: float = -0.01, **more: Any) -> None:
    """Put the legend above the axes, from their left end on."""
    looks: dict[str, Any] = {"ncols": 5, "frameon": False, "borderaxespad": 0.1}
    axes.legend(loc="lower left", bbox_to_anchor=(left, 1.0), **looks | more)


def beside(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write text at the height of a row, `x` in widths of the axes."""
    axes.text(x, y, text, va="center", transform=axes.get_yaxis_transform(), **style)
