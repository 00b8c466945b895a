"""Which network a model is, and what its input must be, as a manifest says it; needs no Keras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cxr_study.training.backbones import BACKBONES, Normalisation, normalisation
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError
from surgical_aggregation.site.contract.site import Site

if TYPE_CHECKING:
    import keras

CHANNELS = 3


def input_facts(backbone: str) -> dict[str, Any]:
    """How an image becomes input of a network, as a manifest says it.

    It is resized to a square of whole grey levels, first its width, then its height, as Pillow does
    either; repeated over the channels; and normalised, see `backbones.Normalisation`.
    """
    return {
        "pixels": {"colour": "grey", "black": 0, "white": 255},
        "resizing": {"method": "bilinear", "antialias": True, "keep_aspect_ratio": False},
        "channels": CHANNELS,
        "normalisation": normalisation(backbone).facts(),
    }


@dataclass(frozen=True)
class Network:
    """Which network a model's variables belong to; see `network.build`."""

    backbone: str
    image_size: int
    hidden: int

    @property
    def normalisation(self) -> Normalisation:
        """What the network wants its pixels to be."""
        return normalisation(self.backbone)

    def build(self, classes: int) -> keras.Model:
        """The network, uncompiled, with a head of so many classes."""
        from cxr_study.training.network import build

        return build(self.backbone, classes, image_size=self.image_size, hidden=self.hidden)

    def facts(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {
            "backbone": self.backbone,
            "image_size": self.image_size,
            "hidden": self.hidden,
            "input": input_facts(self.backbone),
        }


@dataclass(frozen=True)
class SiteNetwork:
    """The network of a `Site` of somebody's own, whose images are what `Site.data` gives."""

    site: Site

    def build(self, classes: int) -> keras.Model:
        """The site's network, uncompiled, with a head of so many classes."""
        from cxr_study.training.network import with_head

        return with_head(self.site.model(), classes)


AnyNetwork = Network | SiteNetwork


def network_of(checkpoint: Checkpoint) -> Network:
    """The network of a model, from its manifest.

    Older manifests have no `hidden`, which the variables tell, and no `input`: it was always that
    of `input_facts`.

    Raises:
        CheckpointError: The manifest does not name a network that is known, or has another input.
    """
    manifest = checkpoint.manifest
    if lacking := [key for key in ("backbone", "image_size") if key not in manifest]:
        raise CheckpointError(
            f"the model's manifest needs {' and '.join(lacking)}, which an older version did not "
            "write. Give the folder of its run, whose job says them."
        )
    backbone = manifest["backbone"]
    if backbone not in BACKBONES:
        raise CheckpointError(
            f"the model's network is {backbone!r}, which this version cannot build. Its own "
            "application can, or the version that trained it."
        )
    known = input_facts(backbone)
    if manifest.get("input", known) != known:
        raise CheckpointError(
            f"the model needs input {manifest['input']}; this version prepares {known}. Install "
            "the version that trained it."
        )
    kernel = checkpoint.variables.get("hidden/kernel")
    hidden = 0 if kernel is None else int(kernel.shape[1])
    return Network(backbone, int(manifest["image_size"]), hidden)
