"""Makes HTML pages that need nothing else: template, style and pictures."""

import base64
import io
from importlib import resources

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from PIL import Image

from cxr_study.common import wording
from cxr_study.reports.page import numbers

CRISP_PIXELS = 128
"""Pictures up to this size are enlarged pixel by pixel; larger ones are smoothed."""

LARGEST_PIXELS = 256
"""Larger pictures are reduced to this size, to keep the file small."""


def template(package: str, **filters: object) -> Template:
    """Read the `template.html.j2` of a package, which may extend and import those of this one.

    What is put into it is escaped, and a value that it lacks is an error. Besides its filters it
    finds `counted` and `listed`, see `wording`; `number`, `share` and `duration`, see `numbers`;
    `style`, see `style`; and `crisp`, `CRISP_PIXELS`.

    Args:
        package: Name of the package, such as `cxr_study.reports.run`.
        filters: Name in the template -> function.
    """
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=ChoiceLoader([PackageLoader(name, "") for name in (package, __package__)]),
    )
    words = {"counted": wording.counted, "listed": wording.listed}
    numbers_ = {"number": numbers.count, "share": numbers.share, "duration": numbers.duration}
    environment.filters |= words | numbers_ | filters
    environment.globals |= {"crisp": CRISP_PIXELS, "style": style()}
    return environment.get_template("template.html.j2")


def style() -> str:
    """The look of every page, as CSS: for the screen, narrow ones too, and for A4 paper."""
    return resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")


def picture(image: np.ndarray, site: str) -> str:
    """Write a picture as a `data:` address of a PNG, reduced to `LARGEST_PIXELS`.

    Args:
        image: Grey values, shape (s, s), dtype uint8.
        site: Whose picture it is, for the error.

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
    buffer = io.BytesIO()
    reduced.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
