"""What cheaply tells that an image is no frontal chest radiograph; it is predicted all the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cxr_study.data.images import dicom
from surgical_aggregation.aggregation.feature_statistics import distances, fault, limits

WIDEST = 1.6
"""Longer side over the shorter one, of a radiograph's detector and with a margin."""

LEAST_CONTRAST = 20
"""Grey levels (of 256) between the 5th and the 95th percentile."""

FAR = "unlike the training sites' images"

_COLOURFUL = 16  # grey levels between the channels of a pixel, beyond what JPEG makes of grey


def of_file(path: Path, image_size: int) -> list[str]:
    """Look at a file's header, and at the colours of one that is not grey.

    Args:
        path: An image file that can be decoded.
        image_size: Side of the model's input; a smaller image has less detail than it was
            trained on.

    Returns:
        Flags, such as "view LL", "colour" or "small: 60 x 48 pixels".
    """
    if dicom.is_dicom_file(path):
        header = dicom.read_header(path)
        width, height = header.width, header.height
        flags = [*header.contradictions, *([] if header.is_frontal else [f"view {header.view}"])]
    else:
        with Image.open(path) as image:
            width, height = image.size
            flags = ["colour"] if _colourful(image) else []
    if min(width, height) < image_size:
        flags.append(f"small: {width} x {height} pixels")
    if max(width, height) > WIDEST * min(width, height):
        flags.append(f"shape: {width} x {height} pixels")
    return flags


def of_pixels(pixels: np.ndarray) -> list[str]:
    """Look at a decoded image, uint8 (side, side)."""
    if pixels.min() == pixels.max():
        return ["constant"]
    dark, light = np.percentile(pixels, (5, 95))
    return ["low contrast"] if light - dark < LEAST_CONTRAST else []


def far_away(features: np.ndarray, sites: Mapping[str, Mapping[str, Any]]) -> np.ndarray:
    """Which images are far from those of every training site.

    Args:
        features: What the head weighs, shape (images, features).
        sites: Site -> its statistics (see `feature_statistics`), as the model's manifest has them;
            of none, nothing is far. Unusable ones do not count, and too wide ones are narrowed.

    Returns:
        bool, shape (images,).
    """
    usable = {site: of for site, of in sites.items() if fault(of, features.shape[1]) is None}
    if not usable:
        return np.zeros(len(features), bool)
    beyond = [distances(features, usable[site]) > most for site, most in limits(usable).items()]
    return np.logical_and.reduce(beyond)


def _colourful(image: Image.Image) -> bool:
    if image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I"):
        return False
    image.draft("RGB", (64, 64))  # a large JPEG decodes at reduced scale
    channels = np.asarray(image.convert("RGB").resize((64, 64)), np.int16)
    return bool(np.ptp(channels, axis=2).max() > _COLOURFUL)
