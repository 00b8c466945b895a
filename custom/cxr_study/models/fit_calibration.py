"""Fit the calibration of a model's probabilities per class, and choose thresholds.

It is fitted on labelled images that the model was not trained on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from cxr_study.common.wording import join_names
from cxr_study.evaluation import bootstrap
from cxr_study.evaluation.calibration_error import calibration_error, reliability
from cxr_study.evaluation.predictions import Predictions
from cxr_study.models.calibration_file import (
    CalibrationError,
    CalibrationFile,
    ClassCalibration,
    Curve,
    Share,
    SiteTest,
    logit,
)
from surgical_aggregation.aggregation.metrics import Floats, auroc
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.checkpoints.manifest import made_now

FEWEST = 20
"""Smallest number of positive, and of negative, images: ten per parameter (Peduzzi et al., J Clin
Epidemiol 1996)."""

FOLDS = 5
"""Folds of the cross-validation by which the calibration error afterwards is estimated."""

NO_LABEL = "no image has a label of it"
"""Reason for refusing a class that the sites do not label."""

_RESAMPLES = 200


def calibrate(
    model: Checkpoint,
    sites: Sequence[Predictions],
    tests: Sequence[Predictions] = (),
    *,
    sensitivity: float | None = None,
) -> CalibrationFile:
    """Calibrate the classes with enough labelled images, and choose their thresholds.

    A class is refused if it has too few positive or negative images or patients, if all its
    probabilities are equal, or if its fitted slope is not positive.

    Args:
        model: The model that made the predictions.
        sites: Its predictions for each site's validation split; they are pooled.
        tests: Its predictions for the sites' test splits, on which sensitivity and specificity at
            the thresholds are estimated. Default: not estimated.
        sensitivity: In (0, 1]. The highest threshold is chosen that reaches it on the validation
            images. Default None: the threshold with the highest F1.

    Returns:
        The calibration of each class, and why the others were refused.

    Raises:
        CalibrationError: No class can be calibrated, or the sensitivity is not in (0, 1].

    Source:
        Platt, Probabilistic Outputs for Support Vector Machines, 1999.
    """
    check_sensitivity(sensitivity)
    found: dict[str, ClassCalibration] = {}
    refused: dict[str, str] = {}
    for name in map(str, sites[0].probabilities):
        one = _pooled(sites, name)
        if why := _too_few(one):
            refused[name] = why
        elif one["probability"].nunique() == 1:  # of equal probabilities any slope is right
            refused[name] = "probabilities that differ between images are needed; all are equal"
        elif (curve := _fitted(one)).slope <= 0:
            area = auroc(one[["label"]].to_numpy(), one[["probability"]].to_numpy())[0]
            refused[name] = (
                f"probabilities that rise with its labels are needed; slope {curve.slope:.2f}, "
                f"AUROC {area:.3f}. Are the labels coded the other way round?"
            )
        else:
            found[name] = _of_class(one, curve, tests, name, sensitivity)
    if not found:
        own = [f"{name}: {why}" for name, why in refused.items() if why != NO_LABEL]
        labelled = sorted({name for each in sites for name in each.images.labelled})
        none = f"the sites label {join_names(labelled)}, the model has {join_names(list(refused))}"
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


def check_sensitivity(sensitivity: float | None) -> None:
    """Check the argument of `calibrate`, before images are predicted for it.

    Raises:
        CalibrationError: It is not in (0, 1].
    """
    if sensitivity is not None and not 0 < sensitivity <= 1:
        raise CalibrationError(
            f"a sensitivity above 0 and at most 1 is needed; got {sensitivity}. Give e.g. 0.9."
        )


def _pooled(sites: Sequence[Predictions], name: str) -> pd.DataFrame:
    """Pool the images of all sites that have a label of a class.

    Returns:
        A row per image: "label", 1 or 0; "probability"; "patient", a number.
    """
    frames = [
        pd.DataFrame(
            {
                "label": each.images.labels([name])[:, 0],
                "probability": each.probabilities[name].to_numpy(float),
                "patient": [f"{each.images.site}/{id_}" for id_ in each.images.table["patient"]],
            }
        )
        for each in sites
    ]
    # The first row sets the columns' types where there are no frames.
    none = pd.DataFrame({"label": [np.nan], "probability": [np.nan], "patient": [""]})
    known = pd.concat([none, *frames]).dropna(subset="label")
    return known.assign(patient=pd.factorize(known["patient"])[0])


def _too_few(one: pd.DataFrame) -> str | None:
    """Why a class has too few images or patients for a calibration; None: it has enough."""
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


def _redrawn(patient: np.ndarray, of: np.ndarray) -> Iterator[Floats]:
    """Yield resamples of the patients, as the number of times that each image is drawn.

    Args:
        patient: Number of each image's patient, from 0 on.
        of: By image, whether it counts. Resamples without such an image are skipped, and nothing is
            yielded if such images are of fewer than `bootstrap.FEWEST` patients.
    """
    if len(np.unique(patient[of])) < bootstrap.FEWEST:
        return
    rng, patients = np.random.default_rng(0), patient.max() + 1
    for _ in range(_RESAMPLES):
        times = rng.multinomial(patients, np.full(patients, 1 / patients))
        counts = times[patient].astype(float)
        if counts[of].any():
            yield counts


def _share(one: pd.DataFrame, of: np.ndarray, right: np.ndarray) -> Share:
    """Share of the images `of` that are `right`, with its 95 % interval.

    The interval is a bootstrap by patient. It has no width where all resamples give the same share,
    as for shares of 0 and 1; the interval is then Clopper and Pearson's for that share of the
    patients with such images.

    Args:
        one: See `_pooled`.
        of: By image, boolean.
        right: Likewise.

    Source:
        Clopper and Pearson, Biometrika 1934.
    """
    from scipy.stats import binomtest

    if not of.any():
        return None, None, None
    patient, share = one["patient"].to_numpy(), float(right[of].mean())
    drawn = [np.average(right[of], weights=times[of]) for times in _redrawn(patient, of)]
    low, high = _ends(drawn)
    if drawn and low == high:
        patients = len(np.unique(patient[of]))
        exact = binomtest(round(share * patients), patients).proportion_ci(bootstrap.CONFIDENCE)
        low, high = float(exact.low), float(exact.high)
    return share, low, high


def _of_class(
    one: pd.DataFrame,
    curve: Curve,
    tests: Sequence[Predictions],
    name: str,
    sensitivity: float | None,
) -> ClassCalibration:
    """Choose the threshold of a class on `one`, and measure it there and on `tests`."""
    labels, before = one["label"].to_numpy(), one["probability"].to_numpy()
    after = curve.apply(before)
    threshold = _threshold(labels, after, sensitivity)
    redrawn = _redrawn(one["patient"].to_numpy(), labels == 1)
    drawn = [_threshold(labels, after, sensitivity, times) for times in redrawn]
    positive, together = after >= threshold, _tested(_pooled(tests, name), curve, threshold)
    unseen = _cross_validated(one)
    kept = ~np.isnan(unseen)
    return ClassCalibration(
        curve=curve,
        threshold=threshold,
        sensitivity=float(positive[labels == 1].mean()),
        specificity=float((~positive[labels == 0]).mean()),
        images=len(labels),
        positives=int(labels.sum()),
        ece_before=_error(labels[kept], before[kept]),
        ece_after=_error(labels[kept], unseen[kept]),
        threshold_ends=_ends(drawn),
        test_sensitivity=together.sensitivity,
        test_specificity=together.specificity,
        test_ppv=together.ppv,
        by_site={
            each.images.site: _tested(_pooled([each], name), curve, threshold) for each in tests
        },
    )


def _tested(test: pd.DataFrame, curve: Curve, threshold: float) -> SiteTest:
    """Measure a class's curve and threshold on test images."""
    labels, present = test["label"].to_numpy(), (test["label"] == 1).to_numpy()
    probabilities = curve.apply(test["probability"].to_numpy())
    reached = probabilities >= threshold
    return SiteTest(
        sensitivity=_share(test, present, reached),
        specificity=_share(test, ~present, ~reached),
        ppv=_share(test, reached, present),
        ece=calibration_error(reliability(labels, probabilities)),
    )


def _ends(drawn: Sequence[float]) -> tuple[float | None, float | None]:
    return bootstrap.percentile_interval(drawn) if drawn else (None, None)


def _fitted(one: pd.DataFrame) -> Curve:
    """Fit a curve by logistic regression without penalty, to the maximum of the likelihood.

    A label 1 of n positive images counts as (n + 1) / (n + 2), a label 0 of n negative ones as
    1 / (n + 2), so that a few images that the model separates give a finite slope (Platt, section
    2.2).
    """
    from scipy.linalg import LinAlgWarning
    from sklearn.linear_model import LogisticRegression

    logits = logit(one["probability"].to_numpy())[:, None]
    labels = one["label"].to_numpy()
    same = 1 + np.where(labels == 1, labels.sum(), (1 - labels).sum())  # n + 1
    both = np.concatenate([labels, 1 - labels])
    weights = np.concatenate([same, np.ones(len(labels))]) / np.tile(same + 1, 2)
    line = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-9, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # of equal probabilities any slope is right
        line.fit(np.tile(logits, (2, 1)), both, weights)
    return Curve(slope=float(line.coef_[0, 0]), intercept=float(line.intercept_[0]))


def _cross_validated(one: pd.DataFrame) -> Floats:
    """Calibrate each image by a curve fitted on the patients of the other folds.

    NaN where these have labels of one value only.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    after = np.full(len(one), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # with few patients a fold may lack positives
        splits = list(StratifiedGroupKFold(FOLDS).split(one, one["label"], one["patient"]))
    for train, held_out in splits:
        if one["label"].iloc[train].nunique() > 1:
            curve = _fitted(one.iloc[train])
            after[held_out] = curve.apply(one["probability"].to_numpy()[held_out])
    return after


def _threshold(
    labels: Floats, probabilities: Floats, sensitivity: float | None, times: Floats | None = None
) -> float:
    """Choose the threshold of a class; see `calibrate`.

    Args:
        labels: 1 or 0, shape (images,).
        probabilities: Calibrated, same shape.
        sensitivity: See `calibrate`.
        times: Weight of each image. Default None: 1.
    """
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
