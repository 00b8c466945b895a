"""Calibrate a model's probabilities per class, and choose thresholds.

The calibration is a JSON file next to the model; weights are not changed. It is fitted on labelled
images that the model was not trained on.
"""

from __future__ import annotations

import json
import reprlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from cxr_study.common.wording import join_names
from cxr_study.evaluation import bootstrap
from cxr_study.evaluation.calibration import calibration_error, reliability
from cxr_study.evaluation.predictions import Predictions
from surgical_aggregation.aggregation.metrics import Floats, auroc
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.checkpoints.manifest import made_now

POSITIVE = " positive"
"""Suffix of the column, in a table of predictions, of whether a class reaches its threshold."""

Share = tuple[float | None, float | None, float | None]
"""A share of images, and the lower and upper end of its 95 % interval by patient.

The share is None if there is no such image, the ends with fewer than `bootstrap.FEWEST` patients.
"""

FEWEST = 20
"""Smallest number of positive, and of negative, images: ten per parameter (Peduzzi et al., J Clin
Epidemiol 1996)."""

FOLDS = 5
"""Folds of the cross-validation by which the calibration error afterwards is estimated."""

NO_LABEL = "no image has a label of it"
"""Reason for refusing a class that the sites do not label."""

_RESAMPLES = 200
_NEAREST = 1e-7  # probabilities are clipped to [1e-7, 1 - 1e-7], about the precision of float32


class CalibrationError(ValueError):
    """A calibration cannot be made or read, or is that of another model."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Curve(_Strict):
    """A calibration curve: p -> sigmoid(slope * logit(p) + intercept).

    Attributes:
        method: "platt", the only one.
        slope: Above 0, so the order of images does not change.
        intercept: Shift of the logit.

    Source:
        Platt, Probabilistic Outputs for Support Vector Machines, 1999.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    method: Literal["platt"] = "platt"
    slope: float = 1
    intercept: float = 0

    def apply(self, probabilities: Floats) -> Floats:
        """Calibrate probabilities.

        Args:
            probabilities: The model's, any shape.

        Returns:
            float64, same shape.

        Example:
            >>> float(Curve(slope=2).apply(np.array(0.5)))
            0.5
        """
        scaled = self.slope * logit(probabilities) + self.intercept
        return np.asarray(1 / (1 + np.exp(-scaled)))


class SiteTest(_Strict):
    """What a class's calibration and threshold reach on one site's test images.

    Attributes:
        sensitivity: At the threshold.
        specificity: Likewise.
        ppv: Share of the images at or above the threshold that have the class.
        ece: Expected calibration error of the calibrated probabilities; None: no labelled image.
    """

    sensitivity: Share = (None, None, None)
    specificity: Share = (None, None, None)
    ppv: Share = (None, None, None)
    ece: float | None = None


class ClassCalibration(_Strict):
    """Calibration of one class.

    Attributes:
        curve: Maps the model's probability to the calibrated one.
        threshold: Of the calibrated probability; the class is positive at or above it.
        sensitivity: At the threshold, on the images on which the threshold was chosen.
        specificity: Likewise.
        images: Number of images with a label of the class.
        positives: Number of these that are positive.
        ece_before: Expected calibration error of the model's own probabilities.
        ece_after: Expected calibration error after calibration, by cross-validation: each image is
            calibrated by a curve that was fitted on other patients.
        threshold_ends: 95 % bootstrap interval of the threshold, by patient; None with few
            patients.
        test_sensitivity: At the threshold, on the test images of all sites together, which were not
            used for the choice.
        test_specificity: Likewise.
        test_ppv: Share of these test images at or above the threshold that have the class. It holds
            for their mix of images: it falls where the class is rarer.
        by_site: Site -> its own test images; empty in older files.
    """

    curve: Curve
    threshold: float
    sensitivity: float
    specificity: float
    images: int
    positives: int
    ece_before: float
    ece_after: float
    threshold_ends: tuple[float | None, float | None] = (None, None)
    test_sensitivity: Share = (None, None, None)
    test_specificity: Share = (None, None, None)
    test_ppv: Share = (None, None, None)
    by_site: dict[str, SiteTest] = {}


class CalibrationFile(_Strict):
    """Content of a calibration file.

    Attributes:
        model_sha256: Digest of the model's variables.
        sites: Sites on whose validation splits the calibration was made.
        threshold_rule: "sensitivity 0.9" (with the value requested) or "f1".
        created: Date, ISO 8601.
        version: Of this software.
        classes: Class -> its calibration.
        refused: Class -> why it is not calibrated.
    """

    model_sha256: str
    sites: tuple[str, ...]
    threshold_rule: str
    created: str
    version: str
    classes: dict[str, ClassCalibration]
    refused: dict[str, str]

    @property
    def target(self) -> float | None:
        """The sensitivity for which thresholds were chosen; None: for the highest F1."""
        _, asked, value = self.threshold_rule.partition("sensitivity ")
        return float(value) if asked else None

    def site_test(self, class_name: str, site: str) -> SiteTest:
        """What a calibrated class reaches on the test images of one site.

        Returns:
            Without numbers where they were not measured, as in older files of several sites, whose
            test images were pooled.
        """
        of = self.classes[class_name]
        if of.by_site or self.sites != (site,):
            return of.by_site.get(site, SiteTest())
        return SiteTest(
            sensitivity=of.test_sensitivity, specificity=of.test_specificity, ppv=of.test_ppv
        )

    def applied(self, probabilities: pd.DataFrame) -> pd.DataFrame:
        """Calibrate a table of probabilities.

        Args:
            probabilities: A column per class; it is not changed.

        Returns:
            A copy with calibrated columns, float32, for the classes that have a calibration. For
            each of these a column "<class> positive" is added, int8: 1 if the calibrated
            probability reaches the threshold, else 0.
        """
        table: pd.DataFrame = probabilities.copy()
        for name, of in self.classes.items():
            if name in table:
                calibrated = of.curve.apply(table[name].to_numpy(float)).astype(np.float32)
                positive = calibrated >= np.float32(of.threshold)
                table[name] = calibrated
                table[f"{name}{POSITIVE}"] = positive.astype(np.int8)
        return table


def logit(probabilities: Floats) -> Floats:
    """Inverse of the sigmoid, float64, finite for 0 and 1 as well.

    Example:
        >>> logit(np.array([0.0, 0.5])).round(1).tolist()
        [-16.1, 0.0]
    """
    inside = np.clip(np.asarray(probabilities, np.float64), _NEAREST, 1 - _NEAREST)
    return np.asarray(np.log(inside / (1 - inside)))


def calibration_path(model: Path) -> Path:
    """Path of a model's calibration file.

    Example:
        >>> calibration_path(Path("best.npz")).name
        'best.calibration.json'
    """
    return model.with_name(f"{model.stem}.calibration.json")


def read_calibration(model: Path, checkpoint: Checkpoint) -> CalibrationFile | None:
    """Read the calibration next to a model.

    Args:
        model: The model's file.
        checkpoint: Its content, to check that the calibration belongs to it.

    Returns:
        The calibration; None if there is no file.

    Raises:
        CalibrationError: The file is damaged, or was made for another model.
    """
    path = calibration_path(model)
    if not path.is_file():
        return None
    try:
        file = CalibrationFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        problem = ": ".join(map(str, (*first["loc"], first["msg"])))
        raise CalibrationError(
            f"{path} is no calibration that this version reads: {problem}; got "
            f"{reprlib.repr(first['input'])}. Recreate it: surgagg model calibrate"
        ) from None
    if file.model_sha256 != digest(checkpoint.variables):
        raise CalibrationError(
            f"{path} was made for another model than {model}. Calibrate this one (surgagg model "
            "calibrate), or remove the file."
        )
    return file


def current_calibration(model: Path, checkpoint: Checkpoint) -> CalibrationFile | None:
    """Read the calibration next to a model; None if there is none, or none that is valid for it."""
    try:
        return read_calibration(model, checkpoint)
    except CalibrationError:
        return None


def as_json(file: CalibrationFile) -> str:
    """Format a calibration as the text of its file."""
    return json.dumps(file.model_dump(), indent=1) + "\n"


def calibrate(
    model: Checkpoint,
    sites: Sequence[Predictions],
    tests: Sequence[Predictions] = (),
    *,
    sensitivity: float | None = None,
) -> CalibrationFile:
    """Calibrate the classes with enough labelled images, and choose their thresholds.

    A class is refused if it has too few positive or negative images or patients, or if its fitted
    slope is not positive.

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
    if sensitivity is not None and not 0 < sensitivity <= 1:
        raise CalibrationError(
            f"a sensitivity above 0 and at most 1 is needed; got {sensitivity}. Give e.g. 0.9."
        )
    found: dict[str, ClassCalibration] = {}
    refused: dict[str, str] = {}
    for name in map(str, sites[0].probabilities):
        one = _pooled(sites, name)
        if why := _too_few(one):
            refused[name] = why
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
    pooled: pd.DataFrame = known.assign(patient=pd.factorize(known["patient"])[0])
    return pooled


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
    """Fit a curve by logistic regression without penalty."""
    from sklearn.linear_model import LogisticRegression

    logits = logit(one["probability"].to_numpy())[:, None]
    line = LogisticRegression(C=np.inf, max_iter=1000).fit(logits, one["label"].to_numpy())
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
