"""Calibrate a model's probabilities on labelled images that it was not trained on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cxr_study.common.wording import listed
from cxr_study.evaluation import bootstrap
from cxr_study.evaluation.calibration import calibration_error, reliability
from cxr_study.models.labelled_predictions import LabelledPredictions
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
    sites: Sequence[LabelledPredictions],
    tests: Sequence[LabelledPredictions] = (),
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
    for name in sites[0].probabilities:
        one = _ClassData.of(sites, name)
        if why := one.too_few():
            refused[str(name)] = why
        elif (curve := _fitted(one.labels, one.said)).slope <= 0:
            area = auroc(one.labels[:, None], one.said[:, None])[0]
            refused[str(name)] = (
                f"probabilities that rise with its labels are needed; slope {curve.slope:.2f}, "
                f"AUROC {area:.3f}. Are the labels coded the other way round?"
            )
        else:
            found[str(name)] = _of_class(one, curve, _ClassData.of(tests, name), sensitivity)
    if not found:
        own = [f"{name}: {why}" for name, why in refused.items() if why != NO_LABEL]
        labelled = sorted({str(name) for each in sites for name in each.labels})
        none = f"the sites label {listed(labelled)}, the model has {listed(list(refused))}"
        raise CalibrationError(
            f"no class can be calibrated on these sites alone: {'; '.join(own) or none}"
        )
    return CalibrationFile(
        model_sha256=digest(model.variables),
        sites=tuple(each.site for each in sites),
        threshold_rule="f1" if sensitivity is None else f"sensitivity {sensitivity:g}",
        **made_now(),
        classes=found,
        refused=refused,
    )


@dataclass(frozen=True, eq=False)
class _ClassData:
    """Labels (1 or 0), probabilities and patients (numbers) of one class's images."""

    labels: Floats
    said: Floats
    groups: np.ndarray

    @classmethod
    def of(cls, sites: Sequence[LabelledPredictions], name: object) -> _ClassData:
        """Pool the sites' images that have a label of a class."""
        none = np.zeros(0)
        columns = (each.labels.reindex(columns=[name]).to_numpy(float)[:, 0] for each in sites)
        labels = np.concatenate([none, *columns])
        said = np.concatenate([none, *(each.probabilities[name].to_numpy(float) for each in sites)])
        patients = [f"{each.site}/{patient}" for each in sites for patient in each.patients]
        known = ~np.isnan(labels)
        return cls(labels[known], said[known], pd.factorize(np.array(patients, str)[known])[0])

    def redrawn(self, of: np.ndarray) -> Iterator[Floats]:
        """How often each image is in a resample of the patients, if any of some images is.

        None is drawn where these are of fewer than `bootstrap.FEWEST` patients.
        """
        if len(np.unique(self.groups[of])) < bootstrap.FEWEST:
            return
        rng, patients = np.random.default_rng(0), self.groups.max() + 1
        for _ in range(_RESAMPLES):
            times = rng.multinomial(patients, np.full(patients, 1 / patients))
            counts = times[self.groups].astype(float)
            if counts[of].any():
                yield counts

    def share(self, positive: np.ndarray, label: int) -> Share:
        """Of the images with a label, 1 or 0, the share that is positive or not as it says."""
        of = self.labels == label
        if not of.any():
            return None, None, None
        right = positive[of] == label
        drawn = [np.average(right, weights=times[of]) for times in self.redrawn(of)]
        return float(right.mean()), *_ends(drawn)

    def too_few(self) -> str | None:
        if not len(self.labels):
            return NO_LABEL
        images = [int((self.labels == value).sum()) for value in (1, 0)]
        patients = [len(np.unique(self.groups[self.labels == value])) for value in (1, 0)]
        if min(images) >= FEWEST and min(patients) >= FOLDS:
            return None
        return (
            f"{FEWEST} positive and {FEWEST} negative images are needed, each of at least {FOLDS} "
            f"patients; there are {images[0]} and {images[1]}, of {patients[0]} and {patients[1]}"
        )


def _of_class(
    one: _ClassData, curve: Curve, test: _ClassData, sensitivity: float | None
) -> ClassCalibration:
    after = curve.apply(one.said)
    threshold = _threshold(one.labels, after, sensitivity)
    redrawn = one.redrawn(one.labels == 1)
    drawn = [_threshold(one.labels, after, sensitivity, times) for times in redrawn]
    positive, tested = after >= threshold, curve.apply(test.said) >= threshold
    unseen = _unseen(one)
    kept = ~np.isnan(unseen)
    return ClassCalibration(
        curve=curve,
        threshold=threshold,
        sensitivity=float(positive[one.labels == 1].mean()),
        specificity=float((~positive[one.labels == 0]).mean()),
        images=len(one.labels),
        positives=int(one.labels.sum()),
        ece_before=_error(one.labels[kept], one.said[kept]),
        ece_after=_error(one.labels[kept], unseen[kept]),
        threshold_ends=_ends(drawn),
        test_sensitivity=test.share(tested, 1),
        test_specificity=test.share(tested, 0),
    )


def _ends(drawn: Sequence[float]) -> tuple[float | None, float | None]:
    return bootstrap.percentile_ends(drawn) if drawn else (None, None)


def _fitted(labels: Floats, said: Floats) -> Curve:
    from sklearn.linear_model import LogisticRegression

    line = LogisticRegression(C=np.inf, max_iter=1000).fit(logit(said)[:, None], labels)
    return Curve(slope=float(line.coef_[0, 0]), intercept=float(line.intercept_[0]))


def _unseen(one: _ClassData) -> Floats:
    """Calibrate each image by what was fitted on the other folds' patients.

    NaN where those have one label alone.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    after = np.full(len(one.said), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few positive patients: some fold has none
        splits = list(StratifiedGroupKFold(FOLDS).split(one.said, one.labels, one.groups))
    for train, held_out in splits:
        if len(np.unique(one.labels[train])) < 2:
            continue
        curve = _fitted(one.labels[train], one.said[train])
        after[held_out] = curve.apply(one.said[held_out])
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
