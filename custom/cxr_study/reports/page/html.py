"""HTML pages that load nothing else: templates, style and embedded images."""

import base64
import io
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from PIL import Image

from cxr_study.common.wording import counted, duration, join_names
from cxr_study.reports.page.numbers import auroc, count, interval

CRISP_PIXELS = 128
"""Side in pixels up to which an image is enlarged pixel by pixel; larger ones are smoothed."""

LARGEST_PIXELS = 256
"""Side in pixels to which larger images are reduced, to keep the page small."""


@cache
def template(package: str, **filters: object) -> Template:
    """Read the page template of a package; it may extend and import the templates of this one.

    Args:
        package: Name of the package that holds `template.html.j2`.
        filters: Name -> function of filters besides those of `environment` and `label_cells`.

    Returns:
        A template that escapes values, with two variables: `style`, the CSS of every page, and
        `crisp`, which is `CRISP_PIXELS`.
    """
    pages = environment(package, autoescape=True)
    pages.filters |= {"label_cells": label_cells} | filters
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    pages.globals |= {"crisp": CRISP_PIXELS, "style": style}
    return pages.get_template("template.html.j2")


def label_cells(rows: Markup, names: Sequence[str]) -> Markup:
    """Give every cell of a table's rows the name of its column, as attribute `data-label`.

    On a narrow screen `style.css` shows a row as a card, with these names before the values.

    Args:
        rows: Row elements as a template made them, so that every value in them is escaped.
        names: Of the columns. A cell that spans several has all of their names, by comma. A
            cell with the attribute keeps it.
    """

    def labelled_row(row: re.Match[str]) -> str:
        columns = iter(names)

        def labelled(cell: re.Match[str]) -> str:
            span = re.search(r'colspan="(\d+)"', cell[0])
            label = ", ".join(filter(None, islice(columns, int(span[1]) if span else 1)))
            own = "data-label=" in cell[0]
            return cell[0] if own else f'{cell[0]} data-label="{escape(label)}"'

        return re.sub(r"<t[hd]\b[^>]*", labelled, row[0])

    return Markup(re.sub(r"(?s)<tr\b.*?</tr>", labelled_row, rows))


def environment(package: str, **options: Any) -> Environment:
    """Make the Jinja environment that reads templates of a package and of this one.

    Args:
        package: Name of the package; its templates come before those of this one.
        options: More arguments of `jinja2.Environment`, such as `autoescape`.

    Returns:
        With the filters `auroc`, `interval`, `number` (see `numbers`), `counted`, `duration` and
        `listed` (see `wording`). A value that a template needs and does not get is an error.
    """
    made = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=ChoiceLoader([PackageLoader(name, "") for name in (package, __package__)]),
        **options,
    )
    made.filters |= {"auroc": auroc, "interval": interval, "number": count}
    made.filters |= {"counted": counted, "duration": duration, "listed": join_names}
    return made


def picture(image: np.ndarray, site: str) -> str:
    """Write an image as a `data:` URL of a PNG, reduced to `LARGEST_PIXELS` if it is larger.

    Args:
        image: Grey values, shape (s, s), dtype uint8.
        site: Whose it is, for the message.

    Raises:
        ValueError: The image has another shape or dtype.
    """
    if image.ndim != 2 or image.shape[0] != image.shape[1] or image.dtype != np.uint8:
        raise ValueError(
            f"a picture needs shape (s, s) and dtype uint8; got {image.shape}, "
            f"{image.dtype} from site {site!r}. Convert it before the page is made."
        )
    reduced = Image.fromarray(image)
    reduced.thumbnail((LARGEST_PIXELS, LARGEST_PIXELS))
    return data_url(reduced)


def data_url(image: Image.Image) -> str:
    """Write an image as a `data:` URL, which a page can embed.

    Args:
        image: Grey (mode L), which becomes a PNG, without loss; or in colour, which becomes a JPEG.
    """
    buffer = io.BytesIO()
    of = "PNG" if image.mode == "L" else "JPEG"
    image.save(buffer, format=of, optimize=True)
    written = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/{of.lower()};base64,{written}"
