"""What the figures of all pages share: colours, axes, and how they become SVG elements.

Figures are drawn by matplotlib under `mpl.rc_context(STYLE)` and written by `svg`. They are
deterministic: the same data give the same bytes.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours and Tol's purple: distinct with any colour vision, and by shape as well.
GLOBAL, UNLABELLED, LOCAL = "#0072B2", "#AA3377", "#C45A00"
INK, MUTED, RULE = "#1B2733", "#5B6875", "#D9DFE5"
_COLOURS = (
    "#4B3B9E", "#A87400", "#00806A", "#C4566A", "#3D94C9",
    "#6E6E22", "#882255", "#117733", "#7A4B1E", "#777777",
)  # fmt: skip
SITES = tuple(zip(_COLOURS, "os^DvPX<>p", strict=True))
"""Colour and marker of each site's line; none is the colour of a model."""

WIDTH = 5.6
"""Width of a figure in inches: half a page on screen, readable when it fills a sheet of A4."""

LONGEST_NAME = 28
"""Characters of a class name that fit to the left of the vertical axis."""

STYLE: dict[Any, Any] = {
    "font.size": 8.5,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "xtick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.color": RULE,
    "ytick.labelcolor": MUTED,
    "svg.fonttype": "none",
    "svg.hashsalt": "cxr_study",
}
"""Settings of matplotlib; text is never a formula, and stays text."""


def name_rows(
    axes: Axes, names: Sequence[str], at: Sequence[float] | None = None, **looks: Any
) -> None:
    """Write names of rows to the left of the vertical axis, without ticks and grid lines.

    Args:
        axes: Whose rows; changed in place.
        names: From the first row to the last; none removes all ticks.
        at: Vertical positions in units of the data, one for each name. Default: 0, 1, ...
        looks: More arguments of `Axes.tick_params`, such as `labelsize`.
    """
    axes.set_yticks((range(len(names)) if at is None else at) if names else [], names)
    axes.tick_params(axis="y", length=0, labelcolor=INK, **looks)
    axes.grid(axis="y", visible=False)


def add_heading(axes: Axes, text: str, colour: str = INK, size: float = 9, **more: Any) -> None:
    """Write a panel's heading, bold, above its left end.

    Args:
        axes: The panel; changed in place.
        text: As it is shown; nothing in it is a formula.
        colour: Of the text, as matplotlib takes it.
        size: In points.
        more: More arguments of `Axes.set_title`.
    """
    axes.set_title(text, loc="left", fontsize=size, fontweight="bold", color=colour, **more)


def legend_above(axes: Axes, left: float = -0.01, **more: Any) -> None:
    """Put the legend above the axes, in up to five columns without a frame.

    Args:
        axes: With labelled artists; changed in place.
        left: Where the legend begins, in widths of the axes.
        more: Arguments of `Axes.legend`, which replace these defaults.
    """
    looks: dict[str, Any] = {"ncols": 5, "frameon": False, "borderaxespad": 0.1}
    axes.legend(loc="lower left", bbox_to_anchor=(left, 1.0), **looks | more)


def write_at_row(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write text at the height of a row, vertically centred.

    Args:
        axes: Changed in place.
        x: Left end of the text, in widths of the axes: 0 is their left end, 1 their right.
        y: The row, in units of the data.
        text: As it is shown.
        style: More arguments of `Axes.text`.
    """
    axes.text(x, y, text, va="center", transform=axes.get_yaxis_transform(), **style)


def site_styles(number: int) -> list[tuple[str, str]]:
    """Colour and marker of each site, in the order of the sites.

    Args:
        number: Of sites. After `len(SITES)` of them, colours and markers repeat.

    Returns:
        A pair for each site: colour as hexadecimal, marker as matplotlib names it.
    """
    return [SITES[i % len(SITES)] for i in range(number)]


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a name that is too long.

    Args:
        name: Of a class or a site.
        longest: Characters that fit.

    Returns:
        The name, or its beginning and an ellipsis, `longest` characters together.
    """
    return name if len(name) <= longest else name[: longest - 1] + "…"


def svg(figure: Figure, name: str, title: str) -> str:
    """Write a figure as an SVG element that can be part of a page with other figures.

    Args:
        figure: Drawn with `STYLE`.
        name: Unique in the page; it becomes the beginning of every id in the element that is
            referred to, since ids must be unique in a page.
        title: What the figure shows, for screen readers; escaped here.

    Returns:
        The element, without date, program or fonts; it scales to the width of its container.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"(?s)<!--.*?-->|<style.*?</style>|<metadata>.*?</metadata>", "", text)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'(?:xlink:)?href="#', f'href="#{name}-', text)
    (view_box,) = re.findall(r'viewBox="[^"]*"', text)
    opening = f'<svg class="figure" {view_box} role="img" aria-label="{html.escape(title)}">'
    return re.sub(r"\n\s*", "\n", re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1)).strip()
