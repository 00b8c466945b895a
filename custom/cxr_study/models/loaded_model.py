"""A model in memory, as a program uses it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cxr_study.models.model_choice import choose
from cxr_study.training.network_facts import Network, network_of
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, load
from surgical_aggregation.checkpoints.model_facts import ModelFacts, facts_of
from surgical_aggregation.site.training.tensorflow_setup import import_quietly

if TYPE_CHECKING:
    from surgical_aggregation.site.training.keras_model import LocalModel, Predicted

BATCH = 64  # images whose activations are held at a time


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

    def outputs(self, pixels: np.ndarray) -> Predicted:
        """Outputs for decoded images.

        Args:
            pixels: uint8 (n, image_size, image_size), as `image_store` and `decoding` make them;
                may be memory-mapped.

        Returns:
            Probabilities float32 (n, classes), and the features that the head weighs, float32
            (n, features).
        """
        local = self.local  # first, for it starts TensorFlow quietly
        from cxr_study.training.input_pipeline import dataset

        nothing = np.zeros((len(pixels), 0), np.float32)
        return local.predict(dataset(pixels, nothing, batch_size=BATCH))


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
