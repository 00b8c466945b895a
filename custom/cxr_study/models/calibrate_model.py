"""Calibrate a model's probabilities on labelled images that it was not trained on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from cxr_study.common.wording import listed
from cxr_study.evaluation import bootstrap
from cxr_study.evaluation.calibration import calibration_error, reliability
from cxr_study.evaluation.predictions import Predictions
from cxr_study.models.prediction.calibration_file import (
    CalibrationError,
    CalibrationFile,
    ClassCalibration,
    Curve,
    Share,
    logit,
)
from surgical_aggregation.aggregation.metrics import Floats, auroc
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.checkpoints.manifest import made_now

FEWEST = 20
"""The least number of positive, and of negative, images: ten per parameter (Peduzzi et al., J Clin
Epidemiol 1996)."""

FOLDS = 5

NO_LABEL = "no image has a label of it"
"""Why a class is refused that the sites do not label."""

_RESAMPLES = 200


def calibrate(
    model: Checkpoint,
    sites: Sequence[Predictions],
    tests: Sequence[Predictions] = (),
    *,
    sensitivity: float | None = None,
) -> CalibrationFile:
    """Calibrate every class that has enough labelled images, and whose probabilities rank them.

    Args:
        model: Whose predictions they are.
        sites: With their validation splits; pooled.
        tests: The same with their test splits, on which thresholds are tested, not chosen.
        sensitivity: The highest threshold is chosen that reaches it on these images, in (0, 1].
            Default None: the threshold of the highest F1.

    Raises:
        CalibrationError: No class can be calibrated, or the sensitivity is not in (0, 1].

    Source:
        Platt, 1999.
    """
    if sensitivity is not None and not 0 < sensitivity <= 1:
        raise CalibrationError(
            f"a sensitivity above 0 and at most 1 is needed; got {sensitivity}. Say e.g. 0.9."
        )
    found: dict[str, ClassCalibration] = {}
    refused: dict[str, str] = {}
    for name in map(str, sites[0].probabilities):
        one = _pooled(sites, name)
        if why := _too_few(one):
            refused[name] = why
        elif (curve := _fitted(one)).slope <= 0:
            area = auroc(one[["label"]].to_numpy(), one[["said"]].to_numpy())[0]
            refused[name] = (
                f"probabilities that rise with its labels are needed; slope {curve.slope:.2f}, "
                f"AUROC {area:.3f}. Are the labels coded the other way round?"
            )
        else:
            found[name] = _of_class(one, curve, _pooled(tests, name), sensitivity)
    if not found:
        own = [f"{name}: {why}" for name, why in refused.items() if why != NO_LABEL]
        labelled = sorted({name for each in sites for name in each.images.labelled})
        none = f"the sites label {listed(labelled)}, the model has {listed(list(refused))}"
        raise CalibrationError(
            f"no class can be calibrated on these sites alone: {'; '.join(own) or none}"
        )
    return CalibrationFile(
        model_sha256=digest(model.variables),
        sites=tuple(each.images.site for each in sites),
        threshold_rule="f1" if sensitivity is None else f"sensitivity {sensitivity:g}",
        **made_now(),
        classes=found,
        refused=refused,
    )


def _pooled(sites: Sequence[Predictions], name: str) -> pd.DataFrame:
    """Images of all sites with a label of a class: label (1 or 0), said, and patient, numbered."""
    frames = [
        pd.DataFrame(
            {
                "label": each.images.labels([name])[:, 0],
                "said": each.probabilities[name].to_numpy(float),
                "patient": [f"{each.images.site}/{who}" for who in each.images.table["patient"]],
            }
        )
        for each in sites
    ]
    none = pd.DataFrame({"label": [np.nan], "said": [np.nan], "patient": [""]})
    known = pd.concat([none, *frames]).dropna(subset="label")
    return known.assign(patient=pd.factorize(known["patient"])[0])


def _too_few(one: pd.DataFrame) -> str | None:
    if one.empty:
        return NO_LABEL
    counts = one.groupby("label")["patient"].agg(["size", "nunique"]).reindex([1, 0], fill_value=0)
    images, patients = counts["size"].tolist(), counts["nunique"].tolist()
    if min(images) >= FEWEST and min(patients) >= FOLDS:
        return None
    return (
        f"{FEWEST} positive and {FEWEST} negative images are needed, each of at least {FOLDS} "
        f"patients; there are {images[0]} and {images[1]}, of {patients[0]} and {patients[1]}"
    )


def _redrawn(one: pd.DataFrame, label: int) -> Iterator[Floats]:
    """How often each image is in a resample of the patients, if any with the label is.

    None is drawn where these are of fewer than `bootstrap.FEWEST` patients.
    """
    of, patient = (one["label"] == label).to_numpy(), one["patient"].to_numpy()
    if len(np.unique(patient[of])) < bootstrap.FEWEST:
        return
    rng, patients = np.random.default_rng(0), patient.max() + 1
    for _ in range(_RESAMPLES):
        times = rng.multinomial(patients, np.full(patients, 1 / patients))
        counts = times[patient].astype(float)
        if counts[of].any():
            yield counts


def _share(one: pd.DataFrame, positive: np.ndarray, label: int) -> Share:
    """Of the images with a label, 1 or 0, the share that is positive or not as it says."""
    of = (one["label"] == label).to_numpy()
    if not of.any():
        return None, None, None
    right = positive[of] == label
    drawn = [np.average(right, weights=times[of]) for times in _redrawn(one, label)]
    return float(right.mean()), *_ends(drawn)


def _of_class(
    one: pd.DataFrame, curve: Curve, test: pd.DataFrame, sensitivity: float | None
) -> ClassCalibration:
    labels, said = one["label"].to_numpy(), one["said"].to_numpy()
    after = curve.apply(said)
    threshold = _threshold(labels, after, sensitivity)
    drawn = [_threshold(labels, after, sensitivity, times) for times in _redrawn(one, 1)]
    positive, tested = after >= threshold, curve.apply(test["said"].to_numpy()) >= threshold
    unseen = _unseen(one)
    kept = ~np.isnan(unseen)
    return ClassCalibration(
        curve=curve,
        threshold=threshold,
        sensitivity=float(positive[labels == 1].mean()),
        specificity=float((~positive[labels == 0]).mean()),
        images=len(labels),
        positives=int(labels.sum()),
        ece_before=_error(labels[kept], said[kept]),
        ece_after=_error(labels[kept], unseen[kept]),
        threshold_ends=_ends(drawn),
        test_sensitivity=_share(test, tested, 1),
        test_specificity=_share(test, tested, 0),
    )


def _ends(drawn: Sequence[float]) -> tuple[float | None, float | None]:
    return bootstrap.percentile_ends(drawn) if drawn else (None, None)


def _fitted(one: pd.DataFrame) -> Curve:
    from sklearn.linear_model import LogisticRegression

    logits = logit(one["said"].to_numpy())[:, None]
    line = LogisticRegression(C=np.inf, max_iter=1000).fit(logits, one["label"].to_numpy())
    return Curve(slope=float(line.coef_[0, 0]), intercept=float(line.intercept_[0]))


def _unseen(one: pd.DataFrame) -> Floats:
    """Calibrate each image by what was fitted on the other folds' patients.

    NaN where those have one label alone.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    after = np.full(len(one), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few positive patients: some fold has none
        splits = list(StratifiedGroupKFold(FOLDS).split(one, one["label"], one["patient"]))
    for train, held_out in splits:
        if one["label"].iloc[train].nunique() > 1:
            after[held_out] = _fitted(one.iloc[train]).apply(one["said"].to_numpy()[held_out])
    return after


def _threshold(
    labels: Floats, probabilities: Floats, sensitivity: float | None, times: Floats | None = None
) -> float:
    """From where a class counts as positive; each image counts `times`, default once."""
    from sklearn.metrics import precision_recall_curve, roc_curve

    if sensitivity is not None:
        _, reached, thresholds = roc_curve(
            labels, probabilities, drop_intermediate=False, sample_weight=times
        )
        return float(thresholds[np.argmax(reached >= sensitivity)])
    precision, recall, thresholds = precision_recall_curve(
        labels, probabilities, sample_weight=times
    )
    f1 = 2 * precision * recall / np.maximum(precision + recall, np.finfo(float).tiny)
    return float(thresholds[np.argmax(f1[:-1])])


def _error(labels: Floats, probabilities: Floats) -> float:
    error = calibration_error(reliability(labels, probabilities))
    return float("nan") if error is None else error
