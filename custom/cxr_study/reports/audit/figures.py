"""The figures of an audit about patients and pixels, as SVG elements to be placed in a page."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle

from cxr_study.data.census import pixels
from cxr_study.data.census.census import AGES, UNKNOWN
from cxr_study.data.census.suppression import Cells
from cxr_study.reports.page.axes import axes_at, headed, in_percent, legend_above
from cxr_study.reports.page.svg import FULL_WIDTH, STYLE, WIDTH, short, site_styles, svg

_ACROSS = 5  # panels side by side


@mpl.rc_context(STYLE)
def ages(sites: Mapping[str, tuple[Cells, int]], name: str) -> str:
    """Draw ages by ten years as shares of each site's images; withheld counts leave a gap."""
    bins = [age for age in AGES if age != UNKNOWN]
    figure, axes = _shares("age, years", "images")
    for (site, (cells, images)), (colour, marker) in _with_looks(sites):
        shares = [np.nan if (n := cells[age]) is None else n / max(1, images) for age in bins]
        label = short(site, 18)
        axes.plot(range(len(bins)), shares, color=colour, marker=marker, ms=4, label=label)
    axes.set_xticks(range(len(bins)), bins)
    axes.set_ylim(bottom=0)
    if len(sites) > 1:
        legend_above(axes, handlelength=1.4)
    return svg(figure, name, "Ages by ten years")


@mpl.rc_context(STYLE)
def intensities(sites: Mapping[str, Sequence[int]], name: str) -> str:
    """Draw the mean histogram of grey values of each site."""
    edges = np.linspace(0, 256, pixels.BINS + 1)
    figure, axes = _shares("grey value (0 black, 255 white)", "pixels")
    for (site, counts), (colour, _) in _with_looks(sites):
        shares = np.array(counts) / pixels.PER
        axes.stairs(shares, edges, color=colour, linewidth=1.5, label=short(site, 18))
        if len(sites) == 1:
            axes.stairs(shares, edges, fill=True, color=colour, alpha=0.2)
    axes.set(xlim=(0, 256), xticks=range(0, 257, 32))
    axes.set_ylim(bottom=0)
    if len(sites) > 1:
        legend_above(axes, handlelength=1.4)
    return svg(figure, name, "Histogram of grey values")


@mpl.rc_context(STYLE | {"axes.grid": False})
def features(
    plane: pixels.Axes,
    sites: Mapping[str, tuple[pixels.Moments, Sequence[pixels.Rectangle]]],
    name: str,
) -> str:
    """Draw where each site's images lie in the common plane, one panel per site.

    A rectangle is the darker, the denser its images; where a site shared none, there is only its
    ellipse, which holds 86 % of a normal distribution (two standard deviations).
    """
    down, across = grid(len(sites))
    side = FULL_WIDTH / max(across, 3) - 0.35
    figure = Figure((FULL_WIDTH, down * (side + 0.75)))
    for i, ((site, (_, parts)), (own, _)) in enumerate(_with_looks(sites)):
        level, column = divmod(i, across)
        bottom = figure.get_figheight() - (level + 1) * (side + 0.75) + 0.42
        axes = axes_at(figure, 0.4 + column * (side + 0.35), bottom, side, side)
        densities = [part.images / (part.width * part.height) for part in parts]
        for part, density in zip(parts, densities, strict=True):
            looks: dict[str, Any] = {"facecolor": own, "edgecolor": "white", "linewidth": 0.6}
            looks["alpha"] = 0.06 + 0.84 * density / max(densities)
            corner = (part.left, part.bottom)
            axes.add_patch(Rectangle(corner, part.width, part.height, **looks))
        for (other, (moments, _)), (colour, _) in _with_looks(sites):
            width = 2.0 if other == site else 0.9
            axes.add_patch(_ellipse(plane, moments, color=colour, linewidth=width))
        ends = (-pixels.REACH, pixels.REACH)
        axes.set(xlim=ends, ylim=ends, xticks=[-2, 0, 2], yticks=[-2, 0, 2])
        axes.spines[:].set_visible(True)
        headed(axes, short(site, 24), own)
        axes.set_xlabel(f"axis 1 ({100 * plane.explained[0]:.0f} %)")
        if column == 0:
            axes.set_ylabel(f"axis 2 ({100 * plane.explained[1]:.0f} %)")
    return svg(figure, name, "Images of each site in a common plane of features")


def grid(panels: int) -> tuple[int, int]:
    """Rows and columns for so many panels, all rows about as long."""
    down = math.ceil(panels / _ACROSS)
    return down, math.ceil(panels / down)


def _with_looks(sites: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Any], tuple[str, str]]]:
    """Each site's name and values, with its colour and marker."""
    return zip(sites.items(), site_styles(len(sites)), strict=True)


def _shares(across: str, of: str) -> tuple[Figure, Axes]:
    """A figure for shares in per cent, with room for a legend above."""
    figure = Figure((WIDTH, 2.5))
    axes = figure.add_axes((0.11, 0.18, 0.87, 0.68), xlabel=across, ylabel=of)
    in_percent(axes.yaxis)
    return figure, axes


def _ellipse(plane: pixels.Axes, moments: pixels.Moments, **looks: Any) -> Ellipse:
    centre, covariance = plane.ellipse(moments)
    variances, vectors = np.linalg.eigh(covariance)
    angle = math.degrees(math.atan2(vectors[1, 1], vectors[0, 1]))
    major, minor = 4 * np.sqrt(np.maximum(variances[::-1], 0))
    middle = (float(centre[0]), float(centre[1]))
    return Ellipse(middle, major, minor, angle=angle, fill=False, **looks)
