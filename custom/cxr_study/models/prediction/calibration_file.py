"""A model's calibration: a JSON file beside it, never a part of its weights."""

from __future__ import annotations

import json
import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from surgical_aggregation.aggregation.metrics import Floats
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest

POSITIVE = " positive"
"""End of the name of a column that says whether a class reaches its threshold."""

Share = tuple[float | None, float | None, float | None]
"""A share of images, and the ends of its 95 % bootstrap interval by patient.

None: there is no such image; of the ends: fewer than `bootstrap.FEWEST` patients.
"""

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


@dataclass(frozen=True)
class Calibration:
    """A model's calibration, to use."""

    file: CalibrationFile

    def calibrated(self, probabilities: pd.DataFrame) -> pd.DataFrame:
        """Calibrate the columns of the classes that have a calibration; the others stay."""
        return probabilities.assign(
            **{
                name: of.curve.apply(probabilities[name].to_numpy(float)).astype(np.float32)
                for name, of in self.file.classes.items()
                if name in probabilities
            }
        )

    def positive(self, calibrated: pd.DataFrame) -> pd.DataFrame:
        """Which calibrated probabilities reach their class's threshold, 1 or 0, int8."""
        return pd.DataFrame(
            {
                f"{name}{POSITIVE}": (calibrated[name] >= np.float32(of.threshold)).astype(np.int8)
                for name, of in self.file.classes.items()
                if name in calibrated
            },
            index=calibrated.index,
        )


def logit(probabilities: Floats) -> Floats:
    """The inverse of the sigmoid, finite also for 0 and 1; float64."""
    inside = np.clip(np.asarray(probabilities, np.float64), _NEAREST, 1 - _NEAREST)
    return np.asarray(np.log(inside / (1 - inside)))


def beside(model: Path) -> Path:
    """Where a model's calibration lies: best.npz has best.calibration.json."""
    return model.with_name(f"{model.stem}.calibration.json")


def read_calibration(model: Path, checkpoint: Checkpoint) -> Calibration | None:
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
    return Calibration(file)


def current_calibration(model: Path, checkpoint: Checkpoint) -> CalibrationFile | None:
    """What lies beside a model and was made for it; None: nothing that was."""
    try:
        found = read_calibration(model, checkpoint)
    except CalibrationError:
        return None
    return None if found is None else found.file


def as_json(file: CalibrationFile) -> str:
    """The text of the file."""
    return json.dumps(file.model_dump(), indent=1) + "\n"
