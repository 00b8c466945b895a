"""The figures of an audit about labels, as SVG elements to be placed in an HTML page."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from cxr_study.data.census.census import OUTCOMES, STATES, Census
from cxr_study.data.census.shareable_census import SharedCensus, prevalence
from cxr_study.reports.audit.figures import grid
from cxr_study.reports.audit.view import union
from cxr_study.reports.page.svg import (
    FULL_WIDTH,
    GLOBAL,
    INK,
    LACKED,
    MUTED,
    OWN,
    STYLE,
    short,
    site_styles,
    svg,
)

_FILLS: dict[str, dict[str, Any]] = {
    "positive": {"facecolor": GLOBAL},
    "negative": {"facecolor": "#B9C3CC"},
    "uncertain": {"facecolor": "#F3D9B8", "edgecolor": OWN, "hatch": "////"},
    "soft": {"facecolor": "#F3D9B8", "edgecolor": OWN, "hatch": "////"},
    "blank": {"facecolor": "#EDF0F3"},
    "not labelled": {"facecolor": "white", "edgecolor": LACKED, "hatch": "...."},
}
_ROW = 0.2  # inches


def labels(census: Census, name: str) -> str:
    """Draw what each class's labels are as read and after the policy, as shares of the images."""
    classes = list(census.classes)
    height = 0.95 + _ROW * len(classes)
    read = {s: [e.read[s].images for e in census.classes.values()] for s in STATES}
    after = {o: [e.labels[o] for e in census.classes.values()] for o in OUTCOMES}
    with mpl.rc_context(STYLE):
        figure = Figure((FULL_WIDTH, height))
        for place, heading, cells in (
            (0.215, "as read", read),
            (0.632, "after the policy", after),
        ):
            axes = figure.add_axes((place, 0.34 / height, 0.348, 1 - 0.95 / height))
            left = np.zeros(len(classes))
            for cell, images in cells.items():
                shares = np.array(images) / max(1, census.total.images)
                some = np.flatnonzero(images)
                if some.size:
                    style = {"linewidth": 0.5 if "hatch" in _FILLS[cell] else 0.0} | _FILLS[cell]
                    axes.barh(some, shares[some], 0.72, left=left[some], label=cell, **style)
                left += shares
            axes.set_xlim(0, 1)
            axes.set_ylim(len(classes) - 0.4, -0.6)
            axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0, labelcolor=INK)
            names = [short(n) for n in classes] if heading == "as read" else []
            axes.set_yticks(range(len(classes)) if names else [], names)
            axes.legend(
                loc="lower left",
                bbox_to_anchor=(-0.01, 1.0),
                ncols=5,
                title=heading,
                title_fontproperties={"weight": "bold", "size": 8.5},
                alignment="left",
                frameon=False,
                handlelength=1.2,
                columnspacing=1.1,
                borderaxespad=0.1,
            )
        return svg(figure, name, f"Labels of {census.site} as read and after the policy")


def cooccurrence(census: Census, name: str) -> str:
    """Draw how many of the images positive for one class are positive for another as well."""
    classes = [short(c) for c in census.classes]
    counts = np.array(census.cooccurrence, float)
    own = np.maximum(np.diag(counts), 1)[:, None]
    shares = counts / own
    size = len(classes)
    side = 0.31 * size
    width, height = side + 2.6, side + 1.5
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure((width, height))
        axes = figure.add_axes((1.95 / width, 0.05 / height, side / width, side / height))
        shown = np.where(np.eye(size, dtype=bool), np.nan, shares)
        axes.pcolormesh(shown, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=0.8)
        for row in range(size):
            for column in range(size):
                dark = row != column and shares[row, column] > 0.45
                axes.text(
                    column + 0.5,
                    row + 0.5,
                    _compact(int(counts[row, column])),
                    ha="center",
                    va="center",
                    fontsize=6.4,
                    color="white" if dark else MUTED if row != column else INK,
                    fontweight="bold" if row == column else "normal",
                )
        axes.set_yticks(np.arange(size) + 0.5, classes)
        axes.set_xticks(
            np.arange(size) + 0.5, classes, rotation=55, ha="left", rotation_mode="anchor"
        )
        axes.tick_params(
            length=0, labelcolor=INK, labelsize=7.5, top=True, labeltop=True, labelbottom=False
        )
        axes.invert_yaxis()
        for spine in axes.spines.values():
            spine.set_visible(False)
        return svg(figure, name, f"Classes of {census.site} that occur together")


def prevalences(sites: Sequence[SharedCensus], name: str) -> str:
    """Draw which site holds which class, and how common it is there."""
    classes = union(sites)
    shares = [[prevalence(s, c) if c in s.classes else None for c in classes] for s in sites]
    top = max([value for row in shares for value in row if value] or [1.0])
    down, across = grid(len(sites))
    panel = 0.75 + 0.19 * len(classes)
    height = down * panel
    step = 0.79 / across
    with mpl.rc_context(STYLE):
        figure = Figure((FULL_WIDTH, height))
        for i, (site, row, (colour, _)) in enumerate(
            zip(sites, shares, site_styles(len(sites)), strict=True)
        ):
            left, level = 0.205 + step * (i % across), i // across
            bottom = 1 - ((level + 1) * panel - 0.4) / height
            axes = figure.add_axes((left, bottom, step - 0.035, (panel - 0.75) / height))
            axes.barh(range(len(classes)), [v or 0 for v in row], 0.7, color=colour)
            for y, (class_name, value) in enumerate(zip(classes, row, strict=True)):
                held = class_name in site.classes
                text = "" if not held else "withheld" if value is None else f"{100 * value:.1f}"
                axes.text((value or 0) + 0.012 * top, y, text, va="center", fontsize=7, color=MUTED)
                if not held:
                    axes.axhspan(y - 0.5, y + 0.5, color="#F4F6F8", linewidth=0)
            axes.set_xlim(0, 1.16 * top)
            axes.set_ylim(len(classes) - 0.4, -0.6)
            axes.set_title(
                short(site.site, 24), loc="left", fontsize=9, fontweight="bold", color=colour
            )
            axes.set_yticks(
                range(len(classes)), [short(c) for c in classes] if i % across == 0 else []
            )
            axes.xaxis.set_major_locator(MaxNLocator(2 if across > 3 else 4))
            axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
            axes.tick_params(axis="y", length=0, labelcolor=INK)
            axes.grid(axis="y", visible=False)
        return svg(figure, name, "How common each class is at each site that holds it")


def _compact(count: int) -> str:
    return (
        f"{count / 1000:.1f}k"
        if count >= 1000 and count < 10_000
        else f"{count // 1000}k"
        if count >= 10_000
        else str(count)
    )
