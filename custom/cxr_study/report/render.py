"""Writes the report of a run: one HTML file that needs nothing else, and its `summary.json`."""

import base64
import io
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from jinja2 import Environment, StrictUndefined
from PIL import Image

from . import figures, view
from .summary import Summary

TOP_PREDICTIONS = 5
"""Predictions shown per example, besides the classes that are present."""

CRISP_PIXELS = 128
"""Pictures up to this size are enlarged pixel by pixel; larger ones are smoothed."""

LARGEST_PIXELS = 256
"""Larger pictures are reduced to this size, to keep the file small."""


@dataclass(frozen=True, eq=False)
class Example:
    """A test picture with what is known and what the global model says about it.

    Attributes:
        site: Whose test split it is from.
        image: Grey values, shape (s, s), dtype uint8.
        truth: Classes labelled present.
        predictions: Class -> probability in [0, 1].
        held: Classes that the site labels itself.
    """

    site: str
    image: np.ndarray
    truth: Sequence[str]
    predictions: Mapping[str, float]
    held: AbstractSet[str]


@dataclass(frozen=True)
class Prediction:
    """One line beside a picture; `probability` is None when the model has no such class."""

    class_name: str
    probability: float | None
    present: bool
    held: bool


def write_report(summary: Summary, examples: Sequence[Example], folder: Path) -> Path:
    """Write `report.html` and `summary.json` into `folder`, each replaced in one step.

    Args:
        summary: What the run found.
        examples: Test pictures to show, in this order; may be empty.
        folder: Made when it does not exist.

    Returns:
        Path of the HTML file.

    Raises:
        SummaryError: The summary does not have the documented form.
        ValueError: An example's image is not a square of 8-bit grey values.
    """
    text, page = summary.to_json(), render(summary, examples)
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / "summary.json", text)
    _replace(folder / "report.html", page)
    return folder / "report.html"


def render(summary: Summary, examples: Sequence[Example]) -> str:
    """Make the HTML page of a report.

    Raises:
        ValueError: An example's image is not a square of 8-bit grey values.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "auroc": view.interval,
        "counted": view.counted,
        "duration": view.duration,
        "listed": view.listed,
        "percent": view.percent,
    }
    source = resources.files(__package__).joinpath("template.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source).render(
        summary=summary,
        view=view,
        examples=[(example, _picture(example), predictions(example)) for example in examples],
        crisp=CRISP_PIXELS,
        figures=figures,
    )


def predictions(example: Example) -> list[Prediction]:
    """The most probable classes of an example, and those present, most probable first."""
    ranked = sorted(example.predictions, key=lambda name: (-example.predictions[name], name))
    shown = ranked[:TOP_PREDICTIONS]
    shown += [name for name in ranked[TOP_PREDICTIONS:] if name in example.truth]
    shown += [name for name in example.truth if name not in example.predictions]
    return [
        Prediction(name, example.predictions.get(name), name in example.truth, name in example.held)
        for name in shown
    ]


def _picture(example: Example) -> str:
    """Write an example's image as a `data:` address of a PNG."""
    image = example.image
    if image.ndim != 2 or image.shape[0] != image.shape[1] or image.dtype != np.uint8:
        raise ValueError(
            f"an example's image needs shape (s, s) and dtype uint8; got {image.shape}, "
            f"{image.dtype} from site {example.site!r}. Convert it before the report."
        )
    picture = Image.fromarray(image)
    picture.thumbnail((LARGEST_PIXELS, LARGEST_PIXELS))
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
