"""A model in memory, as a program uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from cxr_study.models.model_choice import choose
from cxr_study.models.prediction.calibration_file import Calibration, read_calibration
from cxr_study.training.network_facts import Network, network_of
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, load
from surgical_aggregation.checkpoints.model_facts import ModelFacts, facts_of
from surgical_aggregation.site.training.tensorflow_setup import import_quietly

if TYPE_CHECKING:
    from surgical_aggregation.site.training.keras_model import LocalModel

BATCH = 64  # images whose activations are held at a time


class Outputs(NamedTuple):
    """What a model says of images: float32 (images, features) and (images, classes)."""

    features: np.ndarray
    probabilities: np.ndarray


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A trained model; see `load_model`.

    Attributes:
        file: Where it is.
        checkpoint: Its variables and manifest.
        network: What it is built as.
    """

    file: Path
    checkpoint: Checkpoint
    network: Network

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of its outputs, in order."""
        return self.facts.classes

    @cached_property
    def facts(self) -> ModelFacts:
        """What its manifest says."""
        return facts_of(self.checkpoint)

    @property
    def never_learned(self) -> Mapping[str, str]:
        """Classes that no site could teach the model -> why."""
        return self.facts.never_learned

    @cached_property
    def local(self) -> LocalModel:
        """The network with the model's variables; starts TensorFlow.

        Raises:
            CheckpointError: The model has no class.
            SiteError: It does not fit its network.
        """
        import_quietly()
        from cxr_study.training.trained_network import restore

        return restore(self.checkpoint, self.network)

    @cached_property
    def calibration(self) -> Calibration | None:
        """What lies beside its file to calibrate it with; None: nothing.

        Raises:
            CalibrationError: It is that of another model.
        """
        return read_calibration(self.file, self.checkpoint)

    @property
    def features(self) -> Mapping[str, Mapping[str, Any]]:
        """Site -> where its images lie (see `feature_statistics`), as far as policies let it."""
        found: Mapping[str, Mapping[str, Any]] = self.checkpoint.manifest.get("features", {})
        return found

    def predict(
        self, images: Iterable[str | Path] | str | Path, *, calibrated: bool = True
    ) -> pd.DataFrame:
        """Predict images.

        Args:
            images: Image files, folders of them, or csv files that name them.
            calibrated: See `predict_images.predict`. Default True.

        Returns:
            A row per image in their order, with columns "image", one per class, "<class> positive"
            where the class has a threshold, and "flags". Of an image that cannot be read the
            numbers are missing, and the flags say why.

        Raises:
            ImagesError: There is no image.
        """
        from cxr_study.models.prediction.found_images import find
        from cxr_study.models.prediction.predict_images import FLAGS, PROBLEM, predict

        found = find([images] if isinstance(images, str | Path) else images)
        parts = list(predict(self, found, calibrated=calibrated))
        bad = [part.problems.rename(columns={PROBLEM: FLAGS}) for part in parts]
        for frame in bad:
            frame[FLAGS] = "cannot be read: " + frame[FLAGS].astype(str)
        return pd.concat([*(part.table for part in parts), *bad]).sort_index()

    def outputs(self, pixels: np.ndarray, rows: np.ndarray | None = None) -> Outputs:
        """Outputs for decoded images.

        Args:
            pixels: uint8 (n, image_size, image_size), as `image_store` and `decoding` make them;
                may be memory-mapped.
            rows: Which of them, shape (m,). Default: all.

        Returns:
            Probabilities and the features that the head weighs.
        """
        local = self.local  # first, for it starts TensorFlow quietly
        from cxr_study.training.input_pipeline import normalised

        chosen = np.arange(len(pixels)) if rows is None else rows
        batches = [chosen[start : start + BATCH] for start in range(0, max(1, len(chosen)), BATCH)]
        # Not through tf.data, which keeps what a NumPy function of a dataset refers to.
        how = self.network.normalisation
        said = [local.outputs(normalised(np.asarray(pixels[batch]), how)) for batch in batches]
        features, probabilities = map(np.concatenate, zip(*said, strict=True))
        return Outputs(features, probabilities)


def load_model(path: str | Path, site: str | None = None) -> LoadedModel:
    """Load a model to predict with.

    Args:
        path: A checkpoint such as best.npz, or the folder of a run or of a downloaded job.
        site: In a run whose sites have personal models (fedbn, personalised): whose.

    Raises:
        ModelChoiceError: There is no such model.
        CheckpointError: The file cannot be read, or does not say which network it is.

    Example:
        >>> from cxr_study import load_model
        >>> model = load_model("best.npz")  # doctest: +SKIP
        >>> model.predict(["a.png", "b.dcm"])  # doctest: +SKIP
    """
    file, of_job = choose(Path(path), site)
    checkpoint = load(file)
    try:
        network = network_of(checkpoint)
    except CheckpointError as error:
        if of_job is None:
            raise CheckpointError(f"{file}: {error}") from None
        network = of_job
    return LoadedModel(file, checkpoint, network)
