"""What the sites measured on their test splits, in FLARE's cross-site evaluation.

FLARE collects the metrics that each site sends, by site and model, in one JSON file. They come from
outside: names are made fit for a terminal, and a value out of its metric's range counts as not
measured.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from cxr_study.evaluation.bootstrap import FEWEST
from cxr_study.evaluation.scores import SiteEvaluation, group_means
from cxr_study.evaluation.summary_json import ClassAuroc, SiteData
from cxr_study.runs.job_results import CROSS_SITE, ResultsError, cross_site
from surgical_aggregation.aggregation import metrics
from surgical_aggregation.aggregation.metrics import NEGATIVES, POSITIVES
from surgical_aggregation.server.models.evaluated_model import EVALUATED
from surgical_aggregation.wire.untrusted_text import one_line

TABLE = "federated_test.csv"
"""In a report's folder: what the sites measured."""

TESTED = ("SRV_best", f"SRV_{EVALUATED}")
"""Models in it that are measured on test splits: a training job's best, an evaluation's."""

_FIGURES = ("auroc", "bce", POSITIVES, NEGATIVES)
"""Metrics of a class, which sites send as `<metric>/<class>`."""

_MEASURED = ("bce/", f"{POSITIVES}/")
"""Beginnings of metrics of which every measured class has one."""


def read(server: Path) -> pd.DataFrame:
    """Read every class that a site measured.

    Args:
        server: The server's folder of a job.

    Returns:
        A row per class and site, sorted: "class_name", "site"; "auroc" and "bce" (mean binary
        cross-entropy, nats), NaN when not defined; "positives", "negatives": test images labelled
        1 and 0, NA when the site keeps its counts.

    Raises:
        ResultsError: No site has measured a model on its test split.
    """
    rows = [
        (
            one_line(name),  # a site chooses the name
            site,
            *(_number(metric, sent.get(f"{metric}/{name}")) for metric in _FIGURES),
        )
        for site, models in cross_site(server).items()
        for model, sent in models.items()
        if model in TESTED and isinstance(sent, dict)
        for name in {name.partition("/")[2] for name in sent if name.startswith(_MEASURED)}
        if name
    ]
    if not rows:
        raise ResultsError(
            f"{server / CROSS_SITE} holds no result of a test split; has the job finished, and has "
            "it a model that the sites could measure? The server's error_log.txt has the reason."
        )
    kinds = {"auroc": float, "bce": float, "positives": "Int64", "negatives": "Int64"}
    made = pd.DataFrame(rows, columns=["class_name", "site", *kinds]).astype(kinds)
    return made.sort_values(["class_name", "site"], ignore_index=True)


def _number(metric: str, value: Any) -> float:
    """A number that a site may report as this metric; NaN for anything else."""
    return math.nan if metrics.fault({metric: value}, None) else value


def write_csv(results: pd.DataFrame, folder: Path) -> Path:
    """Write what sites measured as `TABLE` into a report's folder, which is made if needed.

    Args:
        results: As `read` returns it.
        folder: Of the report.

    Returns:
        The file; what is not known is an empty field in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results.to_csv(folder / TABLE, index=False)
    return folder / TABLE


def evaluations(
    results: pd.DataFrame, union: tuple[str, ...] = (), sites: tuple[str, ...] = ()
) -> list[SiteEvaluation]:
    """Arrange what sites measured as a report needs it.

    Args:
        results: As `read` returns it.
        union: Classes of the model; those that a site measured are added.
        sites: Of the job, in its order; others that measured something follow.

    Returns:
        An evaluation for each site, of all classes. Classes that a site did not measure are not
        defined there, and there are no intervals: a site sends no predictions.
    """
    names = sorted({*union, *results["class_name"]})
    found = {(row.site, row.class_name): row for row in results.itertuples()}
    made = []
    for site in [*sites, *sorted({*results["site"]} - {*sites})]:
        test = [_class_auroc(site, name, found.get((site, name))) for name in names]
        labelled = tuple(row.class_name for row in test if row.labelled)
        made.append(SiteEvaluation(site, SiteData(labelled, None, None), test, group_means(test)))
    return made


def _class_auroc(site: str, name: str, row: Any) -> ClassAuroc:
    """The row of a report for a class at a site.

    Args:
        site: Its name.
        name: Of the class.
        row: Of the table that `read` returns; None: the site did not measure the class.
    """
    if row is None:
        return ClassAuroc("global", site, name, False, None, None, None, 0, 0, "truth")
    auroc = None if pd.isna(row.auroc) else float(row.auroc)
    known = [None if pd.isna(count) else int(count) for count in (row.positives, row.negatives)]
    few = auroc is not None and any(count is not None and count < FEWEST for count in known)
    positives, negatives = known
    return ClassAuroc(
        "global", site, name, True, auroc, None, None, positives, negatives, "site", few
    )
