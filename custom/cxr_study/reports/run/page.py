"""Writes the report of a run: one HTML file that needs nothing else, and its `summary.json`."""

from collections.abc import Sequence
from pathlib import Path

from cxr_study.common.files import replace
from cxr_study.evaluation.summary import Summary
from cxr_study.reports.page.html import picture, template
from cxr_study.reports.run import view
from cxr_study.reports.run.example_pictures import Example, predictions


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
    from cxr_study.reports.run import figures  # here, for not every report needs matplotlib

    shown = [(e, picture(e.image, e.site), predictions(e)) for e in examples]
    return template(__package__, auroc=view.interval, percent=view.percent).render(
        summary=summary, view=view, examples=shown, figures=figures
    )
