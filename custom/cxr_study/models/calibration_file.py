"""The calibration file of a model: a curve and a threshold per class.

It is a JSON file next to the model, whose weights are not changed.
"""

from __future__ import annotations

import json
import reprlib
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from surgical_aggregation.aggregation.metrics import Floats
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest

POSITIVE = " positive"
"""Suffix of the column, in a table of predictions, of whether a class reaches its threshold."""

Share = tuple[float | None, float | None, float | None]
"""A share of images, and the lower and upper end of its 95 % interval by patient.

The share is None if there is no such image, the ends with fewer than `bootstrap.FEWEST` patients.
"""

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
        return np.asarray(1 / (1 + np.exp(-np.clip(scaled, -700, 700))))


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
        by_site: Site -> its own test images.
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
        """What a class reaches on a site's test images; without numbers where not measured."""
        return self.classes[class_name].by_site.get(site, SiteTest())

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
