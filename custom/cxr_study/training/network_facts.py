"""Which network a model is, and what its input must be, as a manifest says it; needs no Keras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError

CHANNELS = 3
MEAN = (0.485, 0.456, 0.406)
"""Of ImageNet: red, green, blue, on a scale from 0 (black) to 1."""

SD = (0.229, 0.224, 0.225)

INPUT = {
    "pixels": {"colour": "grey", "black": 0, "white": 255},
    "resizing": {"method": "bilinear", "antialias": True, "keep_aspect_ratio": False},
    "channels": CHANNELS,
    "normalisation": {"scale": 255, "mean": list(MEAN), "sd": list(SD)},
}
"""How an image becomes input: resized to a square of whole grey levels, first its width, then its
height, as Pillow does either; repeated over the channels; (pixel / scale - mean) / sd in each."""


@dataclass(frozen=True)
class Network:
    """Which network a model's variables belong to; see `network.build`."""

    backbone: str
    image_size: int
    hidden: int

    def facts(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {
            "backbone": self.backbone,
            "image_size": self.image_size,
            "hidden": self.hidden,
            "input": INPUT,
        }


def network_of(checkpoint: Checkpoint) -> Network:
    """The network of a model, from its manifest.

    Older manifests have no `hidden`, which the variables tell, and no `input`: it was always
    `INPUT`.

    Raises:
        CheckpointError: The manifest does not name the network, or has another input than `INPUT`.
    """
    manifest = checkpoint.manifest
    if lacking := [key for key in ("backbone", "image_size") if key not in manifest]:
        raise CheckpointError(
            f"the model's manifest needs {' and '.join(lacking)}, which an older version did not "
            "write. Give the folder of its run, whose job says them."
        )
    if manifest.get("input", INPUT) != INPUT:
        raise CheckpointError(
            f"the model needs input {manifest['input']}; this version prepares {INPUT}. Install "
            "the version that trained it."
        )
    kernel = checkpoint.variables.get("hidden/kernel")
    hidden = 0 if kernel is None else int(kernel.shape[1])
    return Network(manifest["backbone"], int(manifest["image_size"]), hidden)
