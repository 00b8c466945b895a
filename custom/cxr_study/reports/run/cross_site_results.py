"""What the sites measured on their test splits, in FLARE's cross-site evaluation."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from cxr_study.evaluation.bootstrap import FEWEST
from cxr_study.evaluation.scores import group_means
from cxr_study.evaluation.summary_json import ClassAuroc, SiteData
from cxr_study.reports.page import numbers
from cxr_study.reports.run.run_warnings import warnings
from cxr_study.reports.run.summarise import Measured
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import FinishedRun
from cxr_study.runs.job_results import ResultsError
from surgical_aggregation.aggregation.metrics import NEGATIVES, POSITIVES
from surgical_aggregation.aggregation.strategy import has_personal
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.models.evaluated_model import EVALUATED
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.untrusted_text import one_line

RESULTS_FILE = "cross_site_val/cross_val_results.json"
"""FLARE's own file in the server's folder of a job."""

TESTED = ("SRV_best", f"SRV_{EVALUATED}")
"""Models in it that are measured on test splits: a training job's best, an evaluation's."""

_MEASURED = ("bce/", f"{POSITIVES}/")  # metrics that every measured class has


@dataclass(frozen=True)
class ClassTest:
    """How the model did on one class of one site's test split.

    Attributes:
        auroc: None when not defined, as is `bce`.
        bce: Mean binary cross-entropy, nats.
        positives: Test images labelled 1; `negatives`: 0; None when the site keeps its counts.
    """

    class_name: str
    site: str
    auroc: float | None
    bce: float | None
    positives: int | None
    negatives: int | None


def read(server: Path) -> tuple[ClassTest, ...]:
    """Every class that a site measured, from the server's folder of a job; by class and site.

    Raises:
        ResultsError: No site has measured a model on its test split.
    """
    path = server / RESULTS_FILE
    sites = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    rows = [
        ClassTest(
            one_line(name),  # a site chooses the name
            site,
            *(_number(metrics.get(f"{metric}/{name}")) for metric in ("auroc", "bce")),
            *(_number(metrics.get(f"{kind}/{name}"), int) for kind in (POSITIVES, NEGATIVES)),
        )
        for site, models in sites.items()
        for model, metrics in models.items()
        if model in TESTED
        for name in {name.partition("/")[2] for name in metrics if name.startswith(_MEASURED)}
        if name
    ]
    if not rows:
        raise ResultsError(
            f"{path} holds no result of a test split; has the job finished, and has it a model "
            "that the sites could measure? The server's error_log.txt says what went wrong."
        )
    return tuple(sorted(rows, key=lambda row: (row.class_name, row.site)))


def measured(run: FinishedRun) -> Measured:
    """What the sites of a run measured, as a report shows it.

    The classes that a site does not label are not defined there, and there are no intervals.

    Raises:
        ResultsError: No site has measured a model on its test split.
    """
    server = run.servers[-1]
    rows = read(server)
    best = load(job_results.best_checkpoint(server))
    head = wire.classes_of(best.variables)
    union = tuple(sorted({*head, *(row.class_name for row in rows)}))
    of = {(row.site, row.class_name): row for row in rows}
    names = [*run.job.sites]
    names += sorted({row.site for row in rows} - {*names})
    tests = {
        site: [_class_auroc(site, name, of.get((site, name))) for name in union] for site in names
    }
    return Measured(
        data="elsewhere",
        union=union,
        sites={
            site: SiteData(tuple(row.class_name for row in tests[site] if row.labelled), None, None)
            for site in names
        },
        test=tuple(row for site in names for row in tests[site]),
        means=tuple(mean for site in names for mean in group_means(tests[site])),
        personal=not head or has_personal(str(best.manifest.get("strategy"))),
        warnings=tuple(
            warnings(
                best,
                on_phantom=False,
                without_mixed_precision=False,
                unvalidated={},
                unfinished=run.unfinished,
                breaks=run.breaks,
                look_alikes=job_results.look_alikes(*run.servers),
            )
        ),
    )


def _class_auroc(site: str, name: str, row: ClassTest | None) -> ClassAuroc:
    if row is None:
        return ClassAuroc("global", site, name, False, None, None, None, 0, 0, "truth")
    counts = row.positives, row.negatives
    few = row.auroc is not None and any(n is not None and n < FEWEST for n in counts)
    return ClassAuroc("global", site, name, True, row.auroc, None, None, *counts, "site", few)


def _number(value: object, kind: type = float) -> Any:
    """A number that a site sent; None for anything else."""
    return kind(value) if isinstance(value, int | float) and math.isfinite(value) else None


def write_csv(rows: Sequence[ClassTest], path: Path) -> None:
    """Write the rows; None is an empty field."""
    path.parent.mkdir(parents=True, exist_ok=True)
    counts = dict.fromkeys(("positives", "negatives"), "Int64")
    pd.DataFrame(list(rows)).astype(counts).to_csv(path, index=False)


def table(rows: Sequence[ClassTest]) -> Table:
    """AUROCs for a terminal, classes by sites, the means below."""
    sites = sorted({row.site for row in rows})
    found = {(row.class_name, row.site): row for row in rows}
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
    for name in sorted({row.class_name for row in rows}):
        made.add_row(Text(name), *(_cell(found.get((name, site))) for site in sites))
    made.add_section()
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
    mean = group_means([_class_auroc(row.site, row.class_name, row) for row in rows])[0]
    if not mean.defined + mean.few:
        return Text("not defined", "dim")
    return Text(f"{numbers.figure(mean.auroc)} over {mean.over}")
