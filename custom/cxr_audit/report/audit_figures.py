"""The figures of an audit as SVG elements: patients, pixels and labels.

The argument `name` of each makes the element's ids unique on the page; see `drawing.svg`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from cxr_audit.census import pixels
from cxr_audit.census.census import AGES, OUTCOMES, STATES, UNKNOWN, Census
from cxr_audit.census.shareable_census import Cells, SharedCensus, prevalence
from cxr_audit.report.audit_view import union
from cxr_study.reports.page import drawing as page
from cxr_study.reports.page.numbers import WITHHELD

_ACROSS = 5  # panels side by side
FULL_WIDTH = 1.6 * page.WIDTH
"""Width of a figure that fills the page, in inches."""

STRIPES: dict[str, Any] = {"facecolor": "#F3D9B8", "edgecolor": page.LOCAL, "hatch": "////"}
"""Settings of matplotlib for a striped area."""

_FILLS: dict[str, dict[str, Any]] = {
    "positive": {"facecolor": page.GLOBAL},
    "negative": {"facecolor": "#B9C3CC"},
    "uncertain": STRIPES | {"linewidth": 0.5},
    "soft": STRIPES | {"linewidth": 0.5},
    "blank": {"facecolor": "#EDF0F3"},
    "not labelled": {
        "facecolor": "white", "edgecolor": page.UNLABELLED, "hatch": "....", "linewidth": 0.5,
    },
}  # fmt: skip


def in_percent(axis: Axis) -> None:
    """Write the numbers of an axis as percentages."""
    axis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))


@mpl.rc_context(page.STYLE)
def ages(sites: Mapping[str, tuple[Cells, int]], name: str) -> str:
    """Draw ages by ten years as shares of each site's images; withheld counts leave a gap.

    Args:
        sites: Site -> images by decade, and all its images.
        name: See the module's docstring.
    """
    bins = [age for age in AGES if age != UNKNOWN]
    figure, axes = _shares("age, years", "images")
    for (site, (cells, images)), (colour, marker) in _with_styles(sites):
        shares = [np.nan if (n := cells[age]) is None else n / max(1, images) for age in bins]
        label = page.short(site, 18)
        axes.plot(range(len(bins)), shares, color=colour, marker=marker, ms=4, label=label)
    axes.set_xticks(range(len(bins)), bins)
    return _finish(figure, axes, len(sites), name, "Ages by ten years")


@mpl.rc_context(page.STYLE)
def intensities(sites: Mapping[str, Sequence[int]], name: str) -> str:
    """Draw the mean histogram of grey values of each site.

    Args:
        sites: Site -> histogram; see `pixels.measure`.
        name: See the module's docstring.
    """
    edges = np.linspace(0, 256, pixels.BINS + 1)
    figure, axes = _shares("grey value (0 black, 255 white)", "pixels")
    for (site, counts), (colour, _) in _with_styles(sites):
        shares = np.array(counts) / pixels.PER
        axes.stairs(shares, edges, color=colour, linewidth=1.5, label=page.short(site, 18))
        if len(sites) == 1:
            axes.stairs(shares, edges, fill=True, color=colour, alpha=0.2)
    axes.set(xlim=(0, 256), xticks=range(0, 257, 32))
    return _finish(figure, axes, len(sites), name, "Histogram of grey values")


@mpl.rc_context(page.STYLE)
def labels(census: Census, name: str) -> str:
    """Draw each class's labels as read and after the policy, as shares of the images.

    Args:
        census: Of the site.
        name: See the module's docstring.
    """
    classes = list(census.classes)
    figure = Figure((FULL_WIDTH, 0.95 + 0.2 * len(classes)), layout="constrained")
    read = {s: [e.read[s].images for e in census.classes.values()] for s in STATES}
    after = {o: [e.labels[o] for e in census.classes.values()] for o in OUTCOMES}
    panels = figure.subplots(1, 2, sharey=True)
    page.name_rows(panels[0], list(map(page.short, classes)))
    for axes, heading, cells in (
        (panels[0], "as read", read),
        (panels[1], "after the policy", after),
    ):
        left = np.zeros(len(classes))
        for cell, images in cells.items():
            shares = np.array(images) / max(1, census.total.images)
            some = np.flatnonzero(images)
            if some.size:
                style: dict[str, Any] = {"linewidth": 0.0, "label": cell} | _FILLS[cell]
                axes.barh(some, shares[some], 0.72, left=left[some], **style)
            left += shares
        axes.set(xlim=(0, 1), ylim=(len(classes) - 0.4, -0.6))
        in_percent(axes.xaxis)
        page.legend_above(
            axes, title=heading, title_fontproperties={"weight": "bold", "size": 8.5},
            alignment="left", handlelength=1.2, columnspacing=1.1,
        )  # fmt: skip
    return page.svg(figure, name, f"Labels of {census.site} as read and after the policy")


@mpl.rc_context(page.STYLE | {"axes.grid": False})
def cooccurrence(census: Census, name: str) -> str:
    """Draw which share of the images positive for one class is positive for another as well.

    A row is a class; its cells have numbers of images, and their color is the share of the row's
    images.

    Args:
        census: Of the site.
        name: See the module's docstring.
    """
    classes = [page.short(c) for c in census.classes]
    counts = np.array(census.cooccurrence, float)
    shares = counts / np.maximum(np.diag(counts), 1)[:, None]
    size = len(classes)
    side = 0.31 * size
    figure = Figure((side + 2.6, side + 1.5))
    wide, tall = figure.get_size_inches()
    axes = figure.add_axes((1.95 / wide, 0.05 / tall, side / wide, side / tall))
    shown = np.where(np.eye(size, dtype=bool), np.nan, shares)
    axes.pcolormesh(shown, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=0.8)
    for (row, column), count in np.ndenumerate(counts):
        own = row == column
        dark = not own and shares[row, column] > 0.45
        axes.text(
            column + 0.5, row + 0.5, _compact(int(count)), ha="center", va="center", fontsize=6.4,
            color="white" if dark else page.INK if own else page.MUTED,
            fontweight="bold" if own else "normal",
        )  # fmt: skip
    middles = np.arange(size) + 0.5
    axes.set_yticks(middles, classes)
    axes.set_xticks(middles, classes, rotation=55, ha="left", rotation_mode="anchor")
    axes.tick_params(
        length=0, labelcolor=page.INK, labelsize=7.5, top=True, labeltop=True, labelbottom=False
    )
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    return page.svg(figure, name, f"Classes of {census.site} that occur together")


@mpl.rc_context(page.STYLE)
def prevalences(sites: Sequence[SharedCensus], name: str) -> str:
    """Draw which site labels which class, and its prevalence there.

    Args:
        sites: At least one.
        name: See the module's docstring.
    """
    classes = union(sites)
    shares = [[prevalence(s, c) if c in s.classes else None for c in classes] for s in sites]
    top = max([value for row in shares for value in row if value] or [1.0])
    down = math.ceil(len(sites) / _ACROSS)
    across = math.ceil(len(sites) / down)  # all rows about as long
    high = down * (0.75 + 0.19 * len(classes))
    figure = Figure((FULL_WIDTH, high), layout="constrained")
    panels = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
    for axes in panels[len(sites) :]:
        axes.remove()
    page.name_rows(panels[0], list(map(page.short, classes)))
    styles = page.site_styles(len(sites))
    for axes, site, row, (colour, _) in zip(panels, sites, shares, styles, strict=False):
        axes.grid(axis="y", visible=False)
        axes.barh(range(len(classes)), [v or 0 for v in row], 0.7, color=colour)
        for y, (class_name, value) in enumerate(zip(classes, row, strict=True)):
            labelled = class_name in site.classes
            text = "" if not labelled else WITHHELD if value is None else f"{100 * value:.1f}"
            style: dict[str, Any] = {"va": "center", "fontsize": 7, "color": page.MUTED}
            axes.text((value or 0) + 0.012 * top, y, text, **style)
            if not labelled:
                axes.axhspan(y - 0.5, y + 0.5, color="#F4F6F8", linewidth=0)
        axes.set(xlim=(0, 1.16 * top), ylim=(len(classes) - 0.4, -0.6))
        page.add_heading(axes, page.short(site.site, 24), colour)
        axes.xaxis.set_major_locator(MaxNLocator(2 if across > 3 else 4))
        in_percent(axes.xaxis)
    return page.svg(figure, name, "How common each class is at each site that labels it")


def _with_styles(sites: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Any], tuple[str, str]]]:
    """Each site's name and values, with its colour and marker."""
    return zip(sites.items(), page.site_styles(len(sites)), strict=True)


def _shares(across: str, of: str) -> tuple[Figure, Axes]:
    """A figure for shares in per cent, with room for a legend above."""
    figure = Figure((page.WIDTH, 2.5))
    axes = figure.add_axes((0.11, 0.18, 0.87, 0.68), xlabel=across, ylabel=of)
    in_percent(axes.yaxis)
    return figure, axes


def _finish(figure: Figure, axes: Axes, sites: int, name: str, title: str) -> str:
    """Start the vertical axis at 0, add a legend for several sites, and write the figure as SVG."""
    axes.set_ylim(bottom=0)
    if sites > 1:
        page.legend_above(axes, handlelength=1.4)
    return page.svg(figure, name, title)


def _compact(count: int) -> str:
    """A count below 999,500 in at most four characters, e.g. "2.1k"."""
    thousands = f"{count / 1000:.1f}k" if count < 9_950 else f"{count / 1000:.0f}k"
    return str(count) if count < 1000 else thousands
