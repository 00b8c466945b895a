"""The figures of an audit about patients and pixels, as SVG elements to be placed in a page."""

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle
from matplotlib.ticker import PercentFormatter

from cxr_study.data.census import pixels
from cxr_study.data.census.census import AGES, UNKNOWN
from cxr_study.data.census.suppression import Cells
from cxr_study.reports.page.svg import FULL_WIDTH, STYLE, WIDTH, short, site_styles, svg

_ACROSS = 5  # panels side by side


def ages(sites: Mapping[str, tuple[Cells, int]], name: str) -> str:
    """Draw ages by ten years as shares of each site's images; withheld counts leave a gap."""
    bins = [age for age in AGES if age != UNKNOWN]
    with mpl.rc_context(STYLE):
        figure = Figure((WIDTH, 2.5))
        axes = figure.add_axes((0.11, 0.18, 0.87, 0.68))
        for site, (colour, marker) in zip(sites, site_styles(len(sites)), strict=True):
            cells, images = sites[site]
            shares = [np.nan if (n := cells[age]) is None else n / max(1, images) for age in bins]
            label = short(site, 18)
            axes.plot(range(len(bins)), shares, color=colour, marker=marker, ms=4, label=label)
        axes.set_xticks(range(len(bins)), bins)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        axes.set_xlabel("age, years")
        axes.set_ylabel("images")
        _legend(axes, len(sites))
        return svg(figure, name, "Ages by ten years")


def intensities(sites: Mapping[str, Sequence[int]], name: str) -> str:
    """Draw the mean histogram of grey values of each site."""
    edges = np.linspace(0, 256, pixels.BINS + 1)
    with mpl.rc_context(STYLE):
        figure = Figure((WIDTH, 2.5))
        axes = figure.add_axes((0.11, 0.18, 0.87, 0.68))
        for (site, counts), (colour, _) in zip(sites.items(), site_styles(len(sites)), strict=True):
            shares = np.array(counts) / pixels.PER
            axes.stairs(shares, edges, color=colour, linewidth=1.5, label=short(site, 18))
            if len(sites) == 1:
                axes.stairs(shares, edges, fill=True, color=colour, alpha=0.2)
        axes.set_xlim(0, 256)
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(0, 257, 32))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        axes.set_xlabel("grey value (0 black, 255 white)")
        axes.set_ylabel("pixels")
        _legend(axes, len(sites))
        return svg(figure, name, "Histogram of grey values")


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
    height = down * (side + 0.75)
    looks = site_styles(len(sites))
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure((FULL_WIDTH, height))
        for i, site in enumerate(sites):
            left = 0.4 + (i % across) * (side + 0.35)
            bottom = height - (i // across + 1) * (side + 0.75) + 0.42
            axes = figure.add_axes(
                (left / FULL_WIDTH, bottom / height, side / FULL_WIDTH, side / height)
            )
            densities = [r.images / (r.width * r.height) for r in sites[site][1]]
            for part, density in zip(sites[site][1], densities, strict=True):
                alpha = 0.06 + 0.84 * density / max(densities)
                corner = (part.left, part.bottom)
                axes.add_patch(
                    Rectangle(
                        corner,
                        part.width,
                        part.height,
                        facecolor=looks[i][0],
                        alpha=alpha,
                        edgecolor="white",
                        linewidth=0.6,
                    )
                )
            for other, (colour, _) in zip(sites, looks, strict=True):
                axes.add_patch(
                    _ellipse(plane, sites[other][0], colour, 2.0 if other == site else 0.9)
                )
            axes.set_xlim(-pixels.REACH, pixels.REACH)
            axes.set_ylim(-pixels.REACH, pixels.REACH)
            axes.set_xticks([-2, 0, 2])
            axes.set_yticks([-2, 0, 2])
            for spine in axes.spines.values():
                spine.set_visible(True)
            axes.set_title(
                short(site, 24), loc="left", fontsize=9, fontweight="bold", color=looks[i][0]
            )
            axes.set_xlabel(f"axis 1 ({100 * plane.explained[0]:.0f} %)")
            if i % across == 0:
                axes.set_ylabel(f"axis 2 ({100 * plane.explained[1]:.0f} %)")
        return svg(figure, name, "Images of each site in a common plane of features")


def _ellipse(plane: pixels.Axes, moments: pixels.Moments, colour: str, width: float) -> Ellipse:
    centre, covariance = plane.ellipse(moments)
    variances, vectors = np.linalg.eigh(covariance)
    angle = math.degrees(math.atan2(vectors[1, 1], vectors[0, 1]))
    major, minor = 4 * np.sqrt(np.maximum(variances[::-1], 0))
    return Ellipse(
        (float(centre[0]), float(centre[1])),
        major,
        minor,
        angle=angle,
        fill=False,
        color=colour,
        linewidth=width,
    )


def _legend(axes: Axes, sites: int) -> None:
    if sites > 1:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.01, 1.0),
            ncols=5,
            frameon=False,
            borderaxespad=0.1,
            handlelength=1.4,
        )


def grid(panels: int) -> tuple[int, int]:
    """Rows and columns for so many panels, all rows about as long."""
    down = math.ceil(panels / _ACROSS)
    return down, math.ceil(panels / down)
