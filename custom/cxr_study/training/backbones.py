"""The networks by name, and what each wants its pixels to be; needs no Keras.

Those of `keras.applications` are called by Keras' own names in lower case: "efficientnetb0" is
EfficientNetB0. Each gets the normalisation that its weights were trained with, once: a network that
normalises by itself gets grey levels as they are. An installed package may offer more of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from cxr_study.common.named_parts import by_path
from surgical_aggregation.extras import part

if TYPE_CHECKING:
    import keras

GROUP = "cxr_study.backbones"
"""Of entry points: packages that offer a `Backbone`, by its name."""

VARIABLE = "CXR_BACKBONES"
"""Of a command's or a service's environment: more of them, `module:name` by comma. So who starts
the process names what it imports, never a job."""

HIDDEN_UNITS = range(16_385)
"""Of the layer between pooling and head; 0: none."""


@dataclass(frozen=True)
class Normalisation:
    """How levels from 0 to 255 become input: (level / scale - mean) / sd in each channel.

    `blue_first`: the order of the channels, for those who have colour; else red is.
    `by_variables`: the network goes on to normalise, by values that its body carries.
    """

    scale: float
    mean: tuple[float, float, float]
    sd: tuple[float, float, float]
    blue_first: bool = False
    by_variables: bool = False

    def facts(self) -> dict[str, Any]:
        """What a manifest says of it."""
        said = {"scale": self.scale, "mean": list(self.mean), "sd": list(self.sd)}
        return said | ({"by_variables": True} if self.by_variables else {})


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
"""Names of the networks' bodies; see `network.build`."""


@dataclass(frozen=True)
class Backbone:
    """A network's body that a package offers.

    Attributes:
        build: Shape of the input, (side, side, 3) -> a Keras model whose output are its features,
            shape (batch, features); paths of its variables must be the same in every process.
        normalisation: What it wants its pixels to be.
        weights: Name, such as "imagenet" -> what loads weights that come with the package.
    """

    build: Callable[[tuple[int, int, int]], keras.Model]
    normalisation: Normalisation = IMAGENET
    weights: Mapping[str, Callable[[keras.Model], None]] = field(default_factory=dict)


def offered(backbone: str) -> Backbone | None:
    """A backbone that the environment or an installed package offers; None: it is ours.

    Raises:
        PartError: There is none of this name.
        InputError: The environment names what Python does not find.
    """
    if backbone in _NAMED and backbone not in _OURS:
        found = by_path(_NAMED[backbone])
        return found if isinstance(found, Backbone) else Backbone(found)
    return part("backbone", backbone, GROUP, dict.fromkeys(_OURS))


def normalisation(backbone: str) -> Normalisation:
    """What a backbone wants its pixels to be.

    Raises:
        PartError: There is no such backbone.
    """
    if own := offered(backbone):
        return own.normalisation
    if backbone in _OWN:
        return IMAGENET
    name = APPLICATIONS[backbone]
    return next(kind for kind, names in _APPLICATIONS.items() if name in names)
