"""Draw the README's picture: two hospitals with other findings, and one head for all of them.

Usage: python -m cxr_study.reports.page.readme_picture custom/pictures/union_head.svg
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from cxr_study.reports.page.drawing import GLOBAL, INK, LOCAL, MUTED, RULE, UNLABELLED

A, B, BOTH, PAPER = GLOBAL, LOCAL, UNLABELLED, "#FFFFFF"
FINDINGS = {
    "Atelectasis": (A, "A"),
    "Hernia": (A, "A"),
    "Edema": (BOTH, "A and B"),
    "Fracture": (B, "B"),
}


def text(
    x: int,
    y: int,
    words: str,
    size: float = 14,
    colour: str = INK,
    anchor: str = "middle",
    weight: str = "normal",
) -> str:
    """A line of text."""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{words}</text>'
    )


def box(x: int, y: int, width: int, height: int, colour: str, fill: str = PAPER) -> str:
    """A rectangle with round corners."""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" '
        f'stroke="{colour}" stroke-width="1.6"/>'
    )


def arrow(x1: int, y1: int, x2: int, y2: int, colour: str) -> str:
    """A line with a tip at both ends."""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="2" '
        f'marker-end="url(#{colour[1:]})" marker-start="url(#{colour[1:]})"/>'
    )


def head(colour: str) -> str:
    """The tip of an arrow."""
    return (
        f'<marker id="{colour[1:]}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{colour}"/>'
        "</marker>"
    )


def hospital(y: int, name: str, labels: Sequence[str], colour: str) -> list[str]:
    """A hospital and the findings that it labels."""
    chips = [
        box(36 + 104 * number, y + 44, 96, 26, colour)
        + text(84 + 104 * number, y + 61, finding, 12, colour)
        for number, finding in enumerate(labels)
    ]
    return [
        box(16, y, 344, 108, colour),
        text(36, y + 27, f"Hospital {name} labels", 15, INK, "start", "bold"),
        *chips,
        text(36, y + 94, "images and labels stay here", 12, MUTED, "start"),
    ]


def picture() -> str:
    """The whole picture, SVG."""
    columns = []
    for number, (finding, (colour, whose)) in enumerate(FINDINGS.items()):
        x = 552 + 96 * number
        columns += [
            box(x, 60, 84, 112, colour, colour + "22"),
            text(x + 42, 92, finding, 12.5, colour, weight="bold"),
            text(x + 42, 122, "column", 11.5),
            text(x + 42, 140, f"of {whose}", 11.5),
        ]
    parts = [
        box(1, 1, 958, 298, RULE),
        *hospital(20, "A", ("Atelectasis", "Hernia", "Edema"), A),
        *hospital(172, "B", ("Edema", "Fracture"), B),
        box(532, 20, 408, 260, INK),
        text(736, 44, "Server: one model for the union", 15, weight="bold"),
        *columns,
        box(552, 190, 372, 44, INK, "#eef2f5"),
        text(738, 217, "body: the mean over all hospitals", 13.5),
        text(736, 262, "each hospital gets back the body and its own columns", 12, MUTED),
        arrow(366, 74, 526, 110, A),
        arrow(366, 226, 526, 190, B),
        text(446, 72, "body + 3 columns", 12, A),
        text(446, 246, "body + 2 columns", 12, B),
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 300" width="960" height="300" '
        'font-family="Helvetica, Arial, sans-serif" role="img" aria-label="Two hospitals send the '
        "body and their own columns to the server, which averages each column over the hospitals "
        'that label its finding">'
        f"<defs>{head(A)}{head(B)}</defs>{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
