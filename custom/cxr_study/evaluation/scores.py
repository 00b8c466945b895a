"""Metrics of models on a site's test split, per class and group: the figures of a run's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.images.image_store import Images
from cxr_study.data.sites.site_data import SiteLabels, load_images
from cxr_study.evaluation import bootstrap, test_split
from cxr_study.evaluation.bootstrap import Resampled, resample
from cxr_study.evaluation.calibration_error import calibration_error, reliability
from cxr_study.evaluation.predictions import Predictions, Predictor
from cxr_study.evaluation.subgroup_scores import by_subgroup
from cxr_study.evaluation.summary_json import (
    ClassAuroc,
    Compared,
    Difference,
    Group,
    MeanAuroc,
    Model,
    SiteCalibration,
    SiteData,
    Splits,
    SubgroupAuroc,
)
from surgical_aggregation.checkpoints.checkpoint import Checkpoint

_OF_SUBGROUP = ("kind", "subgroup", "images", "patients", "classes", "compared")


@dataclass(frozen=True, eq=False)
class SiteEvaluation:
    """Metrics of models on one site's test split; see `summary_json.Summary` for their types.

    Attributes:
        site: Name of the site.
        data: Numbers of the site's images and patients.
        test: AUROC per model and class.
        means: Mean AUROC per model and group of classes.
        differences: Mean AUROC of the global model minus that of each other model.
        subgroups: AUROC of the global model by sex, age and view.
        calibration: Calibration error of the global model per class.
        unvalidated: Classes that the site labels, without a positive image in its validation split.
        labels: The site's labels; None: they are on another machine.
        predictions: Of the global model; None likewise, or the site has no personal model.
    """

    site: str
    data: SiteData
    test: Sequence[ClassAuroc]
    means: Sequence[MeanAuroc]
    differences: Sequence[Difference] = ()
    subgroups: Sequence[SubgroupAuroc] = ()
    calibration: Sequence[SiteCalibration] = ()
    unvalidated: Sequence[str] = ()
    labels: SiteLabels | None = None
    predictions: Predictions | None = None


def evaluate_site(
    site_file: Path,
    models: Mapping[Model, Checkpoint],
    union: Sequence[str],
    predictor: Predictor,
    seed: int,
) -> SiteEvaluation:
    """Evaluate models on a site's test split.

    Args:
        site_file: Path of <site>.yaml.
        models: The federation's, "global", and those to compare it with. Without the former its
            AUROCs are not defined, and there are no predictions.
        union: Classes of the run, in the order of the results.
        predictor: For the models' network.
        seed: Of the bootstrap.

    Raises:
        ValueError: The site file or a file that it names is not usable, or a model predicts NaN.
    """
    labels, truth = test_split.read_labels(site_file)
    images = load_images(labels, predictor.network.image_size)
    test = test_split.to_test(images.of("test"), union, truth)
    found: dict[Model, Predictions] = {"global": Predictions(test, test.table[[]], np.empty(0))}
    found |= {name: predictor.predict(model, test) for name, model in models.items()}
    scored = [score(name, each, union, seed) for name, each in found.items()]
    groups: list[tuple[Compared, Group]] = [
        ("local", "labelled"), ("published", "labelled"), ("published", "unlabelled"),
        ("before", "labelled"), ("before", "unlabelled"),
    ]  # fmt: skip
    differences = [
        compare(found["global"], found[against], seed, against=against, group=group)
        for against, group in groups
        if against in found
    ]
    validation = images.of("validation").table
    return SiteEvaluation(
        site=images.site,
        data=_data(images),
        test=[row for rows, _ in scored for row in rows],
        means=[mean for _, means in scored for mean in means],
        differences=[each for each in differences if each is not None],
        subgroups=score_subgroups(found["global"]),
        calibration=score_calibration(found["global"]),
        unvalidated=[n for n in sorted(images.labelled) if not (validation[n] == 1).any()],
        labels=labels,
        predictions=found["global"] if "global" in models else None,
    )


def _data(images: Images) -> SiteData:
    """Numbers of a site's usable images and patients."""
    classes, train = sorted(images.labelled), images.of("train").table
    return SiteData(
        tuple(classes),
        _sizes(images.table),
        _sizes(images.table.drop_duplicates("patient")),
        {n: (int((train[n] > 0.5).sum()), int((train[n] < 0.5).sum())) for n in classes},
    )


def _sizes(table: pd.DataFrame) -> Splits:
    """Number of rows in each split."""
    rows = table["split"].value_counts()
    return Splits(*(int(rows.get(name, 0)) for name in ("train", "validation", "test")))


def score(
    model: Model, predictions: Predictions, union: Sequence[str], seed: int
) -> tuple[list[ClassAuroc], list[MeanAuroc]]:
    """AUROC of one model on one site's test split, with 95 % bootstrap intervals by patient.

    The AUROC is not defined for a class that the model lacks, and for one without positives or
    without negatives in the split. A class with fewer than `bootstrap.FEWEST` patients has no
    interval, nor has one with an AUROC of exactly 0 or 1.

    Args:
        model: Which model it is.
        predictions: The model's, for the test split.
        union: Classes of the run, one row each.
        seed: Of the bootstrap.

    Returns:
        One row per class; and the means over all classes, over those that the site labels, and over
        the others.

    Raises:
        InputError: The split has no image.
    """
    images = predictions.images
    if images.table.empty:
        raise InputError(f"{images.site}: the test split needs images; there is none.")
    drawn = _resampled(predictions, [n for n in union if n in predictions.probabilities], seed)
    values = dict(zip(drawn.classes, drawn.values["auroc"], strict=True))
    ends = dict(zip(drawn.classes, bootstrap.class_intervals(drawn, "auroc"), strict=True))
    enough = drawn.with_interval(drawn.classes)
    rows = []
    for name, labels in zip(union, images.labels(union).T, strict=True):
        labelled = name in images.labelled
        figures = (values.get(name, np.nan), *ends.get(name, (np.nan, np.nan)))
        auroc, low, high = map(_or_none, figures)
        present, absent = int((labels == 1).sum()), int((labels == 0).sum())
        source: Literal["site", "truth"] = "site" if labelled else "truth"
        facts = model, images.site, name, labelled, auroc, low, high, present, absent, source
        rows.append(ClassAuroc(*facts, few=auroc is not None and name not in enough))

    return rows, group_means(rows, drawn)


def _resampled(predictions: Predictions, classes: Sequence[str], seed: int) -> Resampled:
    images, scores = predictions.images, predictions.probabilities[list(classes)]
    patients = images.table["patient"].to_numpy()
    return resample(images.labels(classes), scores.to_numpy(float), classes, patients, seed=seed)


def group_means(rows: Sequence[ClassAuroc], drawn: Resampled | None = None) -> list[MeanAuroc]:
    """Mean AUROC of one model at one site, over each group of classes that is not empty.

    Args:
        rows: One per class. Classes with too few patients are left out of the means, and counted.
        drawn: The model's metrics on resamples, for intervals. Default None: no intervals.

    Returns:
        The means over all classes, over those that the site labels, and over the others.
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
            names = [row.class_name for row in kept]
            found = bootstrap.mean_interval(drawn, "auroc", names) if drawn else None
            interval = (found.low, found.high) if found else (None, None)
            with_few = _mean(defined) if few else None
            means.append(MeanAuroc(*facts, *interval, len(kept), len(members), few, with_few))
    return means


def compare(
    ours: Predictions,
    theirs: Predictions,
    seed: int,
    *,
    against: Compared = "local",
    group: Group = "labelled",
) -> Difference | None:
    """Difference of two models' mean AUROC on one site's test split, with its 95 % interval.

    The bootstrap by patient is paired. Classes with fewer than `bootstrap.FEWEST` patients are left
    out. So are classes that the other model lacks, except against a local model.

    Args:
        ours: Predictions of the global model.
        theirs: Predictions of the other model for the same images.
        seed: Of the bootstrap.
        against: Which model the other one is. Default "local".
        group: Classes to compare: "labelled" (default), "unlabelled" or "all".

    Returns:
        The difference, ours minus theirs; None if a local model lacks one of the site's classes, or
        no class remains.
    """
    images = ours.images
    both = {*ours.probabilities} & {*theirs.probabilities} & {*images.table}
    labelled = images.labelled if against == "local" else images.labelled & both
    if not labelled <= both:
        return None
    of = {"labelled": labelled, "unlabelled": both - images.labelled, "all": both}
    classes = sorted(of[group])
    if not classes:
        return None
    one, other = (_resampled(each, classes, seed) for each in (ours, theirs))
    found = bootstrap.difference_interval(one, other, "auroc", one.with_interval(classes))
    if found is None:
        return None
    few = int(np.isfinite(one.values["auroc"]).sum()) - found.classes
    return Difference(images.site, found.value, found.low, found.high, few, against, group)


def score_subgroups(predictions: Predictions) -> list[SubgroupAuroc]:
    """AUROC of a model by sex, age and view, over the classes that the site labels.

    Args:
        predictions: The model's, for the site's test split.

    Returns:
        One row per subgroup; see `subgroup_scores.by_subgroup`.
    """
    images, scores = predictions.images, predictions.probabilities
    classes = [name for name in scores if name in images.labelled]
    return [
        SubgroupAuroc(
            site=images.site,
            auroc=_or_none(row["auroc"]),
            compared_auroc=_or_none(row["compared_auroc"]),
            **{key: row[key] for key in _OF_SUBGROUP},
        )
        for row in by_subgroup(images.table, classes, scores[classes].to_numpy(float))
        if classes
    ]


def score_calibration(predictions: Predictions) -> list[SiteCalibration]:
    """Expected calibration error of a model per class.

    Args:
        predictions: The model's, for one site's test split.

    Returns:
        One row per class with at least one label in the split.
    """
    rows, images = [], predictions.images
    for name in map(str, predictions.probabilities):
        labels = images.labels([name])[:, 0]
        probabilities = predictions.probabilities[name].to_numpy(float)
        known = ~np.isnan(labels)
        if known.any():
            error = calibration_error(reliability(labels, probabilities))
            facts = images.site, int(known.sum()), error, name, name in images.labelled
            means = probabilities[known].mean(), labels[known].mean()
            rows.append(SiteCalibration(*facts, *map(float, means)))
    return rows


def _mean(rows: Sequence[ClassAuroc]) -> float | None:
    return float(np.mean([row.auroc for row in rows])) if rows else None


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
