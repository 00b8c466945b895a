"""HTML pages that load nothing else: template, style and pictures."""

import base64
import io
from importlib import resources
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from PIL import Image

from cxr_study.common.wording import counted, duration, listed
from cxr_study.reports.page.numbers import auroc, count, interval

CRISP_PIXELS = 128
"""Pictures up to this size are enlarged pixel by pixel; larger ones are smoothed."""

LARGEST_PIXELS = 256
"""Larger pictures are reduced to this size, to keep the file small."""


def template(package: str, **filters: object) -> Template:
    """Read the `template.html.j2` of a package, which may extend and import those of this one.

    Values are escaped. Filters are those of `environment` and those given; `style`, the look
    of every page as CSS, and `crisp` (`CRISP_PIXELS`) are variables.
    """
    pages = environment(package, autoescape=True)
    pages.filters |= filters
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    pages.globals |= {"crisp": CRISP_PIXELS, "style": style}
    return pages.get_template("template.html.j2")


def environment(package: str, **options: Any) -> Environment:
    """What reads templates of a package and of this one; a missing value is an error.

    Args:
        package: Whose.
        options: More of Jinja's.
    """
    made = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=ChoiceLoader([PackageLoader(name, "") for name in (package, __package__)]),
        **options,
    )
    made.filters |= {"auroc": auroc, "interval": interval, "number": count}
    made.filters |= {"counted": counted, "duration": duration, "listed": listed}
    return made


def picture(image: np.ndarray, site: str) -> str:
    """Write grey values, uint8 (s, s), as a `data:` address of a PNG, at most `LARGEST_PIXELS`.

    Raises:
        ValueError: The image, which is the site's, has another shape or dtype.
    """
    if image.ndim != 2 or image.shape[0] != image.shape[1] or image.dtype != np.uint8:
        raise ValueError(
            f"a picture needs shape (s, s) and dtype uint8; got {image.shape}, "
            f"{image.dtype} from site {site!r}. Convert it before the page is made."
        )
    reduced = Image.fromarray(image)
    reduced.thumbnail((LARGEST_PIXELS, LARGEST_PIXELS))
    return address(reduced)


def address(image: Image.Image) -> str:
    """Write a picture as a `data:` address of a PNG, or of a JPEG where it is in colour."""
    buffer = io.BytesIO()
    of = "PNG" if image.mode == "L" else "JPEG"
    image.save(buffer, format=of, optimize=True)
    written = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/{of.lower()};base64,{written}"
