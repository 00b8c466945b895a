"""Writes the report of a run: one HTML file that needs nothing else, and its `summary.json`."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cxr_study.common.files import replace
from cxr_study.evaluation.summary import Summary
from cxr_study.reports.page.html import picture, template
from cxr_study.reports.run import view

TOP_PREDICTIONS = 5
"""Predictions shown per example, besides the classes that are present."""


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
    replace(folder / "summary.json", text)
    replace(folder / "report.html", page)
    return folder / "report.html"


def render(summary: Summary, examples: Sequence[Example]) -> str:
    """Make the HTML page of a report.

    Raises:
        ValueError: An example's image is not a square of 8-bit grey values.
    """
    from cxr_study.reports.run import (
        figures,  # here, for every command imports this module, and not matplotlib
    )

    filters = {"auroc": view.interval, "duration": view.duration, "percent": view.percent}
    shown = [(e, picture(e.image, e.site), predictions(e)) for e in examples]
    return template(__package__, **filters).render(
        summary=summary, view=view, examples=shown, figures=figures
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
