"""Images that a person names, as tables of probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from cxr_study.models.prediction import input_gate
from cxr_study.models.prediction.calibration_file import Calibration
from cxr_study.models.prediction.found_images import FoundImage
from cxr_study.models.prediction.image_reader import ReadImage, read

if TYPE_CHECKING:
    from cxr_study.training.network_facts import Network

IMAGE, FLAGS, PROBLEM = "image", "flags", "problem"

NEVER_LEARNED = "never learned"
"""Flag of every image, before the classes that no site could teach the model."""


class Outputs(Protocol):
    """What a model says of images: shapes (images, features) and (images, classes)."""

    @property
    def features(self) -> np.ndarray: ...  # noqa: D102

    @property
    def probabilities(self) -> np.ndarray: ...  # noqa: D102


class Model(Protocol):
    """What is needed of a `LoadedModel`."""

    @property
    def classes(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def network(self) -> Network: ...  # noqa: D102

    @property
    def features(self) -> Mapping[str, Mapping[str, Any]]: ...  # noqa: D102

    @property
    def never_learned(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def calibration(self) -> Calibration | None: ...  # noqa: D102

    def outputs(self, pixels: np.ndarray) -> Outputs: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class PredictedImages:
    """A chunk of predictions.

    Attributes:
        images: What was predicted, in the order of the rows.
        table: A row per image: its name; per class the probability, float32; per class with a
            threshold "<class> positive", 1 or 0; flags, by "; " (see `input_gate`), with the
            classes that the model never learned.
        problems: A row per image that cannot be read: its name, and the reason.

    The tables' index is the image's position among all.
    """

    images: list[ReadImage]
    table: pd.DataFrame
    problems: pd.DataFrame


def predict(
    model: Model, images: Sequence[FoundImage], *, calibrated: bool = True, bits: int | None = None
) -> Iterator[PredictedImages]:
    """Predict images in chunks, in their order.

    Args:
        model: Which model.
        images: Of any number; memory holds two chunks.
        calibrated: Whether probabilities are calibrated, and thresholds applied, as far as the
            model has a calibration. Default True.
        bits: See `image_reader.read`.

    Raises:
        CalibrationError: The model's calibration is that of another model.
        CheckpointError: The model has no class.
    """
    calibration = model.calibration if calibrated else None
    done = 0
    for chunk in read(images, model.network.image_size, bits):
        at = pd.RangeIndex(done, done + len(chunk))
        done += len(chunk)
        good = np.array([one.pixels is not None for one in chunk])
        readable = [one for one in chunk if one.pixels is not None]
        probabilities, far = _outputs(model, readable)
        values = pd.DataFrame(probabilities, columns=list(model.classes), index=at[good])
        if calibration is not None:
            values = calibration.calibrated(values)
            values = values.join(calibration.positive(values))
        values.insert(0, IMAGE, _texts([one.image for one in readable], values.index))
        never = [f"{NEVER_LEARNED}: {', '.join(model.never_learned)}"] * bool(model.never_learned)
        flags = [
            "; ".join([*one.flags, *([input_gate.FAR] if away else []), *never])
            for one, away in zip(readable, far, strict=True)
        ]
        values[FLAGS] = _texts(flags, values.index)
        bad = [(one.image, one.problem) for one in chunk if one.pixels is None]
        problems = pd.DataFrame(bad, columns=[IMAGE, PROBLEM], index=at[~good], dtype=str)
        yield PredictedImages(readable, values, problems)


def _outputs(model: Model, images: Sequence[ReadImage]) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and which images are far from those of every training site."""
    pixels = [one.pixels for one in images if one.pixels is not None]
    if not pixels:
        return np.zeros((0, len(model.classes)), np.float32), np.zeros(0, bool)
    said = model.outputs(np.stack(pixels))
    return said.probabilities, input_gate.far_away(said.features, model.features)


def _texts(values: list[str], index: pd.Index) -> pd.Series:
    return pd.Series(values, index=index, dtype=str)  # also where there is none
