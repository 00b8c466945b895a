"""A model's calibration: a JSON file beside it, never a part of its weights; how it is made.

It is made on labelled images that the model was not trained on.
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

from cxr_study.common.wording import listed
from cxr_study.evaluation import bootstrap
from cxr_study.evaluation.calibration import calibration_error, reliability
from cxr_study.evaluation.predictions import Predictions
from surgical_aggregation.aggregation.metrics import Floats, auroc
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.checkpoints.manifest import made_now

POSITIVE = " positive"
"""End of the name of a column that says whether a class reaches its threshold."""

Share = tuple[float | None, float | None, float | None]
"""A share of images, and the ends of its 95 % bootstrap interval by patient.

None: there is no such image; of the ends: fewer than `bootstrap.FEWEST` patients.
"""

FEWEST = 20
"""The least number of positive, and of negative, images: ten per parameter (Peduzzi et al., J Clin
Epidemiol 1996)."""

FOLDS = 5

NO_LABEL = "no image has a label of it"
"""Why a class is refused that the sites do not label."""

_RESAMPLES = 200
_NEAREST = 1e-7  # of a probability to 0 and 1; the logit of a float32 ends about there


class CalibrationError(ValueError):
    """A calibration cannot be made, or is that of another model."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Curve(_Strict):
    """What probabilities are turned into: sigmoid(slope * logit(p) + intercept)."""

    model_config = ConfigDict(allow_inf_nan=False)

    method: Literal["platt"] = "platt"
    slope: float = 1
    intercept: float = 0

    def apply(self, probabilities: Floats) -> Floats:
        """Calibrate probabilities of any shape; float64."""
        scaled = self.slope * logit(probabilities) + self.intercept
        return np.asarray(1 / (1 + np.exp(-scaled)))


class ClassCalibration(_Strict):
    """How one class is calibrated, and on what.

    Attributes:
        curve: What its probabilities are turned into.
        threshold: Of the calibrated probability; at or above it the class counts as positive.
        threshold_ends: Of its 95 % bootstrap interval by patient; None with few patients.
        test_sensitivity: At the threshold, on test images, on which nothing was chosen.
        test_specificity: Likewise.
        sensitivity: At the threshold, on the images it was chosen on.
        specificity: Likewise.
        images: With a label of the class.
        positives: Of these.
        ece_before: Expected calibration error of the model's own probabilities.
        ece_after: Of calibrated ones, each by a calibration that has not seen the image's patient.
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


class CalibrationFile(_Strict):
    """What stands in the file.

    Attributes:
        model_sha256: Digest of the model's variables.
        sites: Whose validation splits it was made on.
        threshold_rule: "sensitivity 0.9", or "f1".
        created: Day, ISO 8601.
        version: Of this software.
        classes: Class -> its calibration.
        refused: Class -> why it has none.
    """

    model_sha256: str
    sites: tuple[str, ...]
    threshold_rule: str
    created: str
    version: str
    classes: dict[str, ClassCalibration]
    refused: dict[str, str]

    def applied(self, probabilities: pd.DataFrame) -> pd.DataFrame:
        """Calibrate the columns of the classes that have a calibration; the others stay.

        "<class> positive", int8, follows for each: 1 where it reaches its threshold, else 0.
        """
        table = probabilities.copy()
        for name, of in self.classes.items():
            if name in table:
                said = of.curve.apply(table[name].to_numpy(float)).astype(np.float32)
                table[name] = said
                table[f"{name}{POSITIVE}"] = (said >= np.float32(of.threshold)).astype(np.int8)
        return table


def logit(probabilities: Floats) -> Floats:
    """The inverse of the sigmoid, finite also for 0 and 1; float64."""
    inside = np.clip(np.asarray(probabilities, np.float64), _NEAREST, 1 - _NEAREST)
    return np.asarray(np.log(inside / (1 - inside)))


def beside(model: Path) -> Path:
    """Where a model's calibration lies: best.npz has best.calibration.json."""
    return model.with_name(f"{model.stem}.calibration.json")


def read_calibration(model: Path, checkpoint: Checkpoint) -> CalibrationFile | None:
    """Read what lies beside a model; None: nothing.

    Raises:
        CalibrationError: The file is damaged, or was made for another model.
    """
    path = beside(model)
    if not path.is_file():
        return None
    try:
        file = CalibrationFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        problem = ": ".join(map(str, (*first["loc"], first["msg"])))
        raise CalibrationError(
            f"{path} is no calibration that this version reads: {problem}; got "
            f"{reprlib.repr(first['input'])}. Make it anew: surgagg model calibrate"
        ) from None
    if file.model_sha256 != digest(checkpoint.variables):
        raise CalibrationError(
            f"{path} was made for another model than {model}. Calibrate this one (surgagg model "
            "calibrate), or remove the file."
        )
    return file


def current_calibration(model: Path, checkpoint: Checkpoint) -> CalibrationFile | None:
    """What lies beside a model and was made for it; None: nothing that was."""
    try:
        return read_calibration(model, checkpoint)
    except CalibrationError:
        return None


def as_json(file: CalibrationFile) -> str:
    """The text of the file."""
    return json.dumps(file.model_dump(), indent=1) + "\n"


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
