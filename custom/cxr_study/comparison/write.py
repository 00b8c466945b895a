"""Writes a comparison: a page for people, a table to paste, and the numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from cxr_study.common.files import replace
from cxr_study.comparison import text
from cxr_study.comparison.claims import EQUAL_CLASSES
from cxr_study.comparison.grid import ENDINGS
from cxr_study.comparison.measures import MEASURES
from cxr_study.comparison.outcome import Outcome
from cxr_study.comparison.plan import EQUAL_CLASSES_ROUNDS, EQUAL_CLASSES_ROWS
from cxr_study.comparison.summary import Summary
from cxr_study.evaluation.seed_intervals import Interval
from cxr_study.jobs import job_templates
from cxr_study.jobs.methods import TITLES
from cxr_study.reports.page.html import template

FORMAT = 1
"""Number of the layout of comparison.json."""

HEADS: Mapping[str, str] = MappingProxyType(
    {
        **{
            title: job_templates.METHODS[name].head
            for name, title in TITLES.items()
            if name in job_templates.METHODS
        },
        TITLES["individual"]: "A site trains a model of its own classes on its own images.",
        TITLES["centralised"]: "All images in one place; classes that their site does not label "
        "count as absent.",
        TITLES["centralised-partial"]: "All images in one place; classes that their site does not "
        "label do not count.",
    }
)
"""Title of a method -> what it is."""


def write(summary: Summary, outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write comparison.html, comparison.json, table.md and results.csv.

    Args:
        summary: What was found.
        outcomes: Of the table's trainings.
        folder: Exists.

    Returns:
        Path of the HTML file.
    """
    replace(folder / "comparison.json", json.dumps(values(summary), indent=1, allow_nan=False))
    replace(folder / "table.md", text.markdown(summary))
    replace(folder / "results.csv", results(outcomes).to_csv(index=False, lineterminator="\n"))
    replace(folder / "comparison.html", render(summary))
    return folder / "comparison.html"


def render(summary: Summary) -> str:
    """Make the page."""
    from cxr_study.comparison import figures  # here, for every command imports this module

    return template(__package__).render(
        summary=summary,
        text=text,
        figures=figures,
        endings=ENDINGS,
        measures=MEASURES,
        heads=HEADS,
        equal_classes=EQUAL_CLASSES,
        equal_rows=[text.name(row) for row in EQUAL_CLASSES_ROWS],
        equal_rounds=EQUAL_CLASSES_ROUNDS,
    )


def results(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Every figure of every seed: one row for each training, ending and measure."""
    columns = ["method", "strategy", "head_weighting", "seed", "ending", "measure", "mean_auroc"]
    rows = [
        [*asdict(found.cell.row).values(), found.cell.seed, ending, measure, value]
        for found in outcomes
        for ending in ENDINGS
        for measure in MEASURES
        for value in [found.auroc(ending, measure)]
    ]
    return pd.DataFrame(rows, columns=columns)


def values(summary: Summary) -> dict[str, Any]:
    """The summary as JSON-serialisable values."""
    return {
        "format": FORMAT,
        "version": summary.version,
        "setup": asdict(summary.setup),
        "seeds": summary.seeds,
        "phantom": summary.phantom,
        "rows": [
            {
                **asdict(line.row),
                "trained": line.trained,
                "stopped": [{"best": best, "made": made} for best, made in line.stopped],
                "mean_auroc": {
                    ending: {
                        measure: _interval(line.figures[ending, measure]) for measure in MEASURES
                    }
                    for ending in ENDINGS
                },
            }
            for line in summary.lines
        ],
        "claims": [
            {
                "text": verdict.claim.text,
                "published": verdict.claim.published,
                "findings": [
                    {**asdict(finding), "difference": _interval(finding.difference)}
                    for finding in verdict.findings
                ],
            }
            for verdict in summary.verdicts
        ],
        "equal_classes": {"text": EQUAL_CLASSES, "verdict": summary.equal_classes},
        "failures": dict(summary.failures),
        "seconds": summary.seconds,
    }


def _interval(value: Interval | None) -> dict[str, Any] | None:
    return None if value is None else asdict(value)
