"""Names of backbones, and the normalisation of their input. Needs no Keras.

- Networks of `keras.applications`, by Keras' names in lower case: "efficientnetb0" is
  EfficientNetB0.
- `small_densenet` and `tiny_densenet` of this package.
- Those that installed packages or the environment offer, see `GROUP` and `VARIABLE`.

Each has the normalisation that its pre-trained weights need, applied once: a network with
normalisation layers gets grey levels from 0 to 255.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from cxr_study.common.named_parts import load_object
from surgical_aggregation.extras import find_part

if TYPE_CHECKING:
    import keras

__all__ = ["Backbone", "normalisation"]

GROUP = "cxr_study.backbones"
"""Group of entry points by which packages offer a `Backbone`; the name is the backbone's."""

VARIABLE = "CXR_BACKBONES"
"""Environment variable with further backbones, `module:name`, separated by commas.

It is set by the user who starts the process, so a job cannot decide what is imported.
"""

HIDDEN_UNITS = range(16_385)
"""Allowed sizes of the layer between pooling and head; 0: no such layer."""


@dataclass(frozen=True)
class Normalisation:
    """Normalisation of grey levels or colours from 0 to 255: (level / scale - mean) / sd.

    Attributes:
        scale: Divisor of the levels.
        mean: Per channel, in the order of the channels.
        sd: Per channel, likewise.
        blue_first: Whether channels are ordered blue, green, red; matters only for colour. Default
            False: red, green, blue.
        by_variables: Whether layers of the network normalise further, by variables of its body.
            Default False.
    """

    scale: float
    mean: tuple[float, float, float]
    sd: tuple[float, float, float]
    blue_first: bool = False
    by_variables: bool = False

    def facts(self) -> dict[str, Any]:
        """The normalisation as a manifest records it, for grey images."""
        facts = {"scale": self.scale, "mean": list(self.mean), "sd": list(self.sd)}
        return facts | ({"by_variables": True} if self.by_variables else {})


IMAGENET = Normalisation(255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and standard deviation of ImageNet: red, green, blue."""

_SYMMETRIC = Normalisation(255, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
_CAFFE = Normalisation(1, (103.939, 116.779, 123.68), (1.0, 1.0, 1.0), blue_first=True)
_INSIDE = Normalisation(1, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_CARRIED = Normalisation(1, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), by_variables=True)

_APPLICATIONS: Mapping[Normalisation, tuple[str, ...]] = {
    IMAGENET: ("DenseNet121", "DenseNet169", "DenseNet201"),
    _SYMMETRIC: (
        *("InceptionResNetV2", "InceptionV3", "MobileNet", "MobileNetV2", "NASNetLarge"),
        *("NASNetMobile", "ResNet50V2", "ResNet101V2", "ResNet152V2", "Xception"),
    ),
    _CAFFE: ("ResNet50", "ResNet101", "ResNet152", "VGG16", "VGG19"),
    _INSIDE: (
        *("ConvNeXtTiny", "ConvNeXtSmall", "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtXLarge"),
        *(f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "S", "M", "L")),
        *("MobileNetV3Large", "MobileNetV3Small"),
    ),
    _CARRIED: tuple(f"EfficientNetB{number}" for number in range(8)),
}
APPLICATIONS = {name.lower(): name for names in _APPLICATIONS.values() for name in names}
"""Backbone -> its name in `keras.applications`."""

_OWN = ("small_densenet", "tiny_densenet")
_OURS = ("densenet121", *_OWN, *sorted(APPLICATIONS.keys() - {"densenet121"}))
_NAMED = {path.partition(":")[2]: path for path in os.environ.get(VARIABLE, "").split(",") if path}
BACKBONES = (*_OURS, *sorted({*entry_points(group=GROUP).names, *_NAMED} - {*_OURS}))
"""Names of all backbones; see `network.build`."""


@dataclass(frozen=True)
class Backbone:
    """A backbone that a package offers.

    Attributes:
        build: Function from the shape of the input, (side, side, 3), to a Keras model with features
            as output, shape (batch, features). The paths of its variables must be the same in every
            process.
        normalisation: Of its input. Default: ImageNet's.
        weights: Name, such as "imagenet" -> function that loads weights of the package into the
            model. Default: the package has no weights.
    """

    build: Callable[[tuple[int, int, int]], keras.Model]
    normalisation: Normalisation = IMAGENET
    weights: Mapping[str, Callable[[keras.Model], None]] = field(default_factory=dict)


def offered(backbone: str) -> Backbone | None:
    """Find a backbone that the environment or an installed package offers.

    Args:
        backbone: Its name.

    Returns:
        The backbone; None if the name is one of this package or of `keras.applications`.

    Raises:
        PartError: There is no backbone of this name.
        InputError: The environment names a module or attribute that does not exist.
    """
    if backbone in _NAMED and backbone not in _OURS:
        found = load_object(_NAMED[backbone])
        return found if isinstance(found, Backbone) else Backbone(found)
    return find_part("backbone", backbone, GROUP, dict.fromkeys(_OURS), Backbone)


def normalisation(backbone: str) -> Normalisation:
    """Normalisation of a backbone's input, by the backbone's name.

    Raises:
        PartError: There is no backbone of this name.

    Example:
        >>> normalisation("densenet121") == IMAGENET
        True
    """
    if own := offered(backbone):
        return own.normalisation
    if backbone in _OWN:
        return IMAGENET
    name = APPLICATIONS[backbone]
    return next(kind for kind, names in _APPLICATIONS.items() if name in names)
