"""What the sites measured of a model on their test splits, in FLARE's cross-site evaluation."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.table import Table
from rich.text import Text

from cxr_study.runs.job_results import ResultsError
from surgical_aggregation.aggregation.metrics import NEGATIVES, POSITIVES
from surgical_aggregation.server.models.evaluated_model import GIVEN
from surgical_aggregation.wire.untrusted_text import one_line

RESULTS_FILE = "cross_site_val/cross_val_results.json"
"""FLARE's own file in the server's folder of a job."""

TESTED = ("SRV_best", f"SRV_{GIVEN}")
"""Models in it that are measured on test splits: a training job's best, an evaluation's."""


@dataclass(frozen=True)
class ClassTest:
    """How the model did on one class of one site's test split.

    Attributes:
        class_name: The class.
        site: Whose test split.
        auroc: None when not defined.
        bce: Mean binary cross-entropy, nats; None when not defined.
        positives: Test images labelled 1; None when the site keeps its counts.
        negatives: Test images labelled 0; likewise.
    """

    class_name: str
    site: str
    auroc: float | None
    bce: float | None
    positives: int | None
    negatives: int | None


def read(server: Path) -> tuple[ClassTest, ...]:
    """Results of every site for every class that it measured, by class and site.

    Args:
        server: The server's folder of a finished job, or the folder `workspace` of a downloaded
            one.

    Raises:
        ResultsError: No site has measured a model on its test split.
    """
    path = server / RESULTS_FILE
    sites = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    rows = [
        row
        for site, models in sites.items()
        for model, metrics in models.items()
        if model in TESTED
        for row in _rows(site, metrics)
    ]
    if not rows:
        raise ResultsError(
            f"{path} holds no result of a test split; has the job finished, and has it a model "
            "that the sites could measure? The server's error_log.txt says what went wrong."
        )
    return tuple(sorted(rows, key=lambda row: (row.class_name, row.site)))


def _rows(site: str, metrics: dict[str, float]) -> list[ClassTest]:
    names = [name.partition("/") for name in metrics]
    classes = {name for metric, _, name in names if name and metric in ("bce", POSITIVES)}
    return [
        ClassTest(
            one_line(name),  # by the site, in a metric's
            site,
            _number(metrics.get(f"auroc/{name}")),
            _number(metrics.get(f"bce/{name}")),
            _count(metrics.get(f"{POSITIVES}/{name}")),
            _count(metrics.get(f"{NEGATIVES}/{name}")),
        )
        for name in classes
    ]


def _number(value: object) -> float | None:
    """A site's figure; None for anything that is none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _count(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def write_csv(rows: Sequence[ClassTest], path: Path) -> None:
    """Write the rows; a field is empty where there is no number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    counts = dict.fromkeys(("positives", "negatives"), "Int64")
    pd.DataFrame(list(rows)).astype(counts).to_csv(path, index=False)


def table(rows: Sequence[ClassTest]) -> Table:
    """AUROCs for a terminal, classes by sites, the means below."""
    sites = sorted({row.site for row in rows})
    cells = {(row.class_name, row.site): row for row in rows}
    counted = any(row.positives is not None for row in rows)
    made = Table(
        title="AUROC on each site's test split",
        title_justify="left",
        caption="in brackets: positive / labelled images\n" * counted
        + "- : the site does not measure the class",
        caption_justify="left",
    )
    made.add_column("class", overflow="fold")
    for site in sites:
        made.add_column(Text(site), overflow="fold")
    classes = sorted({row.class_name for row in rows})
    for name in classes:
        made.add_row(
            Text(name),
            *(_cell(cells.get((name, site))) for site in sites),
            end_section=name == classes[-1],
        )
    made.add_row("mean", *(_mean([row for row in rows if row.site == site]) for site in sites))
    return made


def _cell(row: ClassTest | None) -> Text:
    if row is None:
        return Text("-", "dim")
    text = Text("not defined", "dim") if row.auroc is None else Text(f"{row.auroc:.3f}")
    if row.positives is not None and row.negatives is not None:
        text.append(f" ({row.positives} / {row.positives + row.negatives})", "dim")
    return text


def _mean(rows: Sequence[ClassTest]) -> Text:
    defined = [row.auroc for row in rows if row.auroc is not None]
    if not defined:
        return Text("not defined", "dim")
    return Text(f"{np.mean(defined):.3f} over {len(defined)} of {len(rows)}")
