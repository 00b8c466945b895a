"""How well a model does on a site's test split, class by class: the figures of a run's report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cxr_study.evaluation.bootstrap import class_ends, mean_interval, resample
from cxr_study.evaluation.summary import ClassAuroc, Group, MeanAuroc, Model
from cxr_study.evaluation.test_split import TestSplit


def score(
    model: Model, split: TestSplit, probabilities: pd.DataFrame, union: Sequence[str], seed: int
) -> tuple[list[ClassAuroc], list[MeanAuroc]]:
    """AUROC of one model on one site's test split, with 95 % bootstrap intervals by patient.

    Args:
        model: "global" or "local".
        split: The test split.
        probabilities: A column per class of the model; a class of the union that it lacks is not
            defined, nor is one without positives or without negatives in the split.
        union: All classes.
        seed: Of the bootstrap.

    Returns:
        One row per class, and the means over all classes, labelled and unlabelled ones.
    """
    scored = [name for name in union if name in probabilities]
    scores = probabilities[scored].to_numpy(float)
    drawn = resample(
        split.labels(scored), scores, scored, split.table["patient"].to_numpy(), seed=seed
    )
    values = dict(zip(scored, drawn.values["auroc"], strict=True))
    ends = dict(zip(scored, class_ends(drawn, "auroc"), strict=True))
    labels = split.labels(union)
    rows = []
    for i, name in enumerate(union):
        low, high = ends.get(name, (np.nan, np.nan))
        rows.append(
            ClassAuroc(
                model=model,
                site=split.site,
                class_name=name,
                labelled=name in split.labelled,
                auroc=_or_none(values.get(name, np.nan)),
                low=_or_none(low),
                high=_or_none(high),
                positives=int((labels[:, i] == 1).sum()),
                negatives=int((labels[:, i] == 0).sum()),
                labels="site" if name in split.labelled else "truth",
            )
        )
    groups: dict[Group, list[ClassAuroc]] = {
        "all": rows,
        "labelled": [row for row in rows if row.labelled],
        "unlabelled": [row for row in rows if not row.labelled],
    }
    means = []
    for group, members in groups.items():
        if not members:
            continue
        defined = [row.class_name for row in members if row.auroc is not None]
        found = mean_interval(drawn, "auroc", defined) if defined else None
        means.append(
            MeanAuroc(
                model=model,
                site=split.site,
                classes=group,
                auroc=None if found is None else found.value,
                low=None if found is None else found.low,
                high=None if found is None else found.high,
                defined=len(defined),
                of=len(members),
            )
        )
    return rows, means


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
