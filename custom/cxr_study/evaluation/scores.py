"""How well a model does on a site's test split, class by class: the figures of a run's report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from cxr_study.evaluation.bootstrap import class_ends, difference_interval, mean_interval, resample
from cxr_study.evaluation.calibration import calibration_error, reliability
from cxr_study.evaluation.subgroup_scores import by_subgroup
from cxr_study.evaluation.summary_json import (
    ClassAuroc,
    Difference,
    Group,
    MeanAuroc,
    Model,
    SiteCalibration,
    SubgroupAuroc,
)
from cxr_study.evaluation.test_split import TestSplit

Ends = tuple[float | None, float | None]
"""Of a 95 % interval; None where not defined."""

_OF_SUBGROUP = ("kind", "subgroup", "images", "patients", "classes", "compared")


def score(
    model: Model, split: TestSplit, probabilities: pd.DataFrame, union: Sequence[str], seed: int
) -> tuple[list[ClassAuroc], list[MeanAuroc]]:
    """AUROC of one model on one site's test split, with 95 % bootstrap intervals by patient.

    A class of the union that the model lacks, as a column of the probabilities, is not defined, nor
    is one without positives or without negatives in the split. One with fewer than
    `bootstrap.FEWEST` patients has no interval.

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
    enough = drawn.enough(scored)
    rows = []
    for name, labels in zip(union, split.labels(union).T, strict=True):
        labelled = name in split.labelled
        figures = (values.get(name, np.nan), *ends.get(name, (np.nan, np.nan)))
        auroc, low, high = map(_or_none, figures)
        present, absent = int((labels == 1).sum()), int((labels == 0).sum())
        source: Literal["site", "truth"] = "site" if labelled else "truth"
        facts = model, split.site, name, labelled, auroc, low, high, present, absent, source
        rows.append(ClassAuroc(*facts, few=auroc is not None and name not in enough))

    def ends_of_mean(classes: Sequence[str]) -> Ends:
        found = mean_interval(drawn, "auroc", classes)
        return (found.low, found.high) if found else (None, None)

    return rows, group_means(rows, ends_of_mean)


def group_means(
    rows: Sequence[ClassAuroc], ends: Callable[[Sequence[str]], Ends] = lambda classes: (None, None)
) -> list[MeanAuroc]:
    """Means of one model's AUROCs at one site, over all classes, labelled and unlabelled ones.

    Args:
        rows: Of every class. Those of too few patients are left out, and counted.
        ends: Classes -> ends of the interval of their mean; default: not defined.
    """
    groups: dict[Group, list[ClassAuroc]] = {
        "all": list(rows),
        "labelled": [row for row in rows if row.labelled],
        "unlabelled": [row for row in rows if not row.labelled],
    }
    means = []
    for group, members in groups.items():
        defined = [row for row in members if row.auroc is not None]
        kept = [row for row in defined if not row.few]
        few = len(defined) - len(kept)
        if members:
            facts = members[0].model, members[0].site, group, _mean(kept)
            interval = ends([row.class_name for row in kept])
            with_few = _mean(defined) if few else None
            means.append(MeanAuroc(*facts, *interval, len(kept), len(members), few, with_few))
    return means


def compare(
    split: TestSplit,
    ours: pd.DataFrame,
    theirs: pd.DataFrame,
    seed: int,
    *,
    against: Literal["local", "before"] = "local",
    group: Group = "labelled",
) -> Difference | None:
    """How far one model's mean AUROC is ahead of another's, over the site's classes of a group.

    The 95 % interval is of resamples by patient that both have in common. Classes with fewer than
    `bootstrap.FEWEST` patients are left out, and against the model before those that it lacks. None
    where a local model lacks one of the classes, or none is left.
    """
    both = {*map(str, ours)} & {*map(str, theirs)} & {*map(str, split.table)}
    labelled = set(split.labelled) if against == "local" else set(split.labelled) & both
    if not labelled <= both:
        return None
    of = {"labelled": labelled, "unlabelled": both - split.labelled, "all": both}
    classes = sorted(of[group])
    if not classes:
        return None
    patients = split.table["patient"].to_numpy()
    one, other = (
        resample(split.labels(classes), each[classes].to_numpy(float), classes, patients, seed=seed)
        for each in (ours, theirs)
    )
    found = difference_interval(one, other, "auroc", one.enough(classes))
    if found is None:
        return None
    few = int(np.isfinite(one.values["auroc"]).sum()) - found.classes
    return Difference(split.site, found.value, found.low, found.high, few, against, group)


def score_subgroups(split: TestSplit, probabilities: pd.DataFrame) -> list[SubgroupAuroc]:
    """A model in the subgroups of one site's test split, over the classes that the site labels."""
    classes = [name for name in probabilities if name in split.labelled]
    return [
        SubgroupAuroc(
            site=split.site,
            auroc=_or_none(row["auroc"]),
            compared_auroc=_or_none(row["compared_auroc"]),
            **{key: row[key] for key in _OF_SUBGROUP},
        )
        for row in by_subgroup(split.table, classes, probabilities[classes].to_numpy(float))
    ]


def score_calibration(split: TestSplit, probabilities: pd.DataFrame) -> list[SiteCalibration]:
    """How far a model's probabilities are off, class by class, where there is any label."""
    rows = []
    for name in map(str, probabilities):
        labels, said = split.labels([name])[:, 0], probabilities[name].to_numpy(float)
        known = ~np.isnan(labels)
        if known.any():
            error = calibration_error(reliability(labels, said))
            facts = split.site, int(known.sum()), error, name, name in split.labelled
            means = said[known].mean(), labels[known].mean()
            rows.append(SiteCalibration(*facts, *map(float, means)))
    return rows


def _mean(rows: Sequence[ClassAuroc]) -> float | None:
    return float(np.mean([row.auroc for row in rows])) if rows else None


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
