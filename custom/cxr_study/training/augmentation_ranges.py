"""By how much training images are changed; needs no TensorFlow."""

from dataclasses import dataclass


class AugmentationError(ValueError):
    """An augmentation is unknown."""


@dataclass(frozen=True)
class Amplitudes:
    """By how much images are changed at most, either way; 0: not at all.

    Attributes:
        rotation: Degrees, about the centre.
        shift: Of the side, to the right and down.
        zoom: 0.5: from one and a half times as much of the chest in the picture to half as much.
        brightness: Of the range from black to white.
        contrast: Of the distance of each pixel from the image's mean.
        flip: Share of the images that are mirrored.
    """

    rotation: float = 0.0
    shift: float = 0.0
    zoom: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    flip: float = 0.0


AUGMENTATIONS = {
    "none": Amplitudes(),
    "radiology": Amplitudes(rotation=7, shift=0.05, zoom=0.05, brightness=0.1, contrast=0.1),
    "paper": Amplitudes(rotation=72, zoom=0.5, contrast=0.75, flip=0.5),
}
"""Name -> amplitudes.

`radiology` is what a change of positioning and exposure does. It never mirrors: a flip puts the
heart on the right, which in a chest radiograph is a finding (dextrocardia, or a collapsed lung
pulling it over) and not a variant. `paper` is what the code released with the papers does (Kulkarni
et al., ML4H 2024; their text gives no amplitudes): it mirrors, turns patients on their side and
cuts the lungs off, far beyond what a radiology department makes. It is there to repeat their
studies.
"""


def amplitudes(augmentation: str) -> Amplitudes:
    """Amplitudes of an augmentation.

    Raises:
        AugmentationError: It is none of `AUGMENTATIONS`.
    """
    if augmentation not in AUGMENTATIONS:
        raise AugmentationError(
            f"augmentation must be one of {tuple(AUGMENTATIONS)}; got {augmentation!r}."
        )
    return AUGMENTATIONS[augmentation]
