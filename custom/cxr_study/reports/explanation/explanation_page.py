"""A page for one predicted image: its probabilities, and heat maps of the evidence for them.

Needs TensorFlow: heat maps are gradients of the network on this image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import tensorflow as tf
from matplotlib import colormaps
from PIL import Image

from cxr_study.common.files import atomic_write
from cxr_study.data.images.decoding import decode
from cxr_study.models.calibration_file import POSITIVE
from cxr_study.models.images_to_predict import ReadImage
from cxr_study.models.loaded_model import FLAGS, NEVER_LEARNED, LoadedModel
from cxr_study.reports.page.html import data_url, template
from cxr_study.training.backbones import IMAGENET, Normalisation
from cxr_study.training.input_pipeline import normalised
from surgical_aggregation.site.training.local_model import LocalModel

SIDE = 384
"""Height and width in pixels of an image on the page."""

_STRONGEST = 0.6
"""Opacity of the heat map where it is largest and the class is certain."""

_NO_NAME = r"[^\w.-]+"
"""Characters that are replaced in the file name of a page."""


def write(
    model: LoadedModel,
    chunk: Mapping[int, ReadImage],
    table: pd.DataFrame,
    most: int,
    folder: Path,
) -> list[Path]:
    """Write a page for each image of a chunk that could be read.

    Args:
        model: That predicted it.
        chunk: Its images, see `LoadedModel.predict_chunks`.
        table: Their predictions, likewise.
        most: How many classes, the most probable first, get a heat map: so many of those with a
            calibration, and so many of the others, since the two cannot be ranked together. A
            class that the model never learned gets none.
        folder: Where the pages go, each named by its image's position and name: `a/b.png`, the 8th
            image, has `7-a-b.png.html`.

    Returns:
        The pages.
    """
    page = template(__package__)
    classes = model.calibration.classes if model.calibration else {}
    thresholds = {n: of.threshold for n, of in classes.items() if f"{n}{POSITIVE}" in table}
    never = model.facts.never_learned
    pages = []
    for (_, row), at in zip(table.iterrows(), table.index.tolist(), strict=True):
        read = chunk[at]
        # As the network sees it, with more pixels.
        picture = decode(Path(read.path).read_bytes(), SIDE, bits=read.bits).pixels
        likeliest = row[list(model.classes)].astype(float).sort_values(ascending=False)
        ranked = {str(name): float(probability) for name, probability in likeliest.items()}
        calibrated = [name for name in ranked if name in thresholds]
        others = [name for name in ranked if name not in thresholds]
        tops = [[n for n in names if n not in never][:most] for names in (calibrated, others)]
        pixels, how = np.asarray(read.pixels), model.network.normalisation
        heats = heat_maps(model.local, pixels, [*tops[0], *tops[1]], how)
        flags = row[FLAGS].split("; ")  # every image of the model has those of NEVER_LEARNED
        text = page.render(
            image=read.image,
            model=model,
            flags="; ".join(flag for flag in flags if not flag.startswith(NEVER_LEARNED)),
            picture=data_url(Image.fromarray(picture)),
            probabilities=ranked,
            thresholds=thresholds,
            positives=[name for name in thresholds if row[f"{name}{POSITIVE}"] == 1],
            groups=[names for names in (calibrated, others) if names],
            heats={n: data_url(_overlay(picture, ranked[n] * heat)) for n, heat in heats.items()},
            blank=[n for n, heat in heats.items() if not heat.any()],
        )
        path = folder / f"{re.sub(_NO_NAME, '-', f'{at}-{read.image}')}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text)
        pages.append(path)
    return pages


def _overlay(picture: np.ndarray, heat: np.ndarray) -> Image.Image:
    """Blend a heat map into a grey image.

    Args:
        picture: uint8 (SIDE, SIDE).
        heat: From 0 to 1, any shape; enlarged by cubic interpolation.

    Returns:
        In colour; the image itself where the heat is 0.
    """
    large = np.asarray(
        Image.fromarray(heat.astype(np.float32)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    )
    large = large.clip(0, 1)[..., None]
    colours = 255 * colormaps["inferno"](large[..., 0])[..., :3]
    hidden = _STRONGEST * large
    mixed = (1 - hidden) * picture[..., None] + hidden * colours
    return Image.fromarray(mixed.round().astype(np.uint8))


def heat_maps(
    local: LocalModel, pixels: np.ndarray, classes: Sequence[str], how: Normalisation = IMAGENET
) -> dict[str, np.ndarray]:
    """Grad-CAM of some classes for one image.

        heat = relu(sum_k a_k M_k),  a_k = mean over positions of d logit / d M_k

    M are the maps that the network pools. Gradients are the logit's: a probability near 1 has
    next to none. Without a hidden layer a_k is proportional to the head's weight, which is CAM.

    Args:
        local: The model.
        pixels: uint8 (side, side).
        classes: Of the model.
        how: The model's normalisation.

    Returns:
        Class -> float32 (rows, columns) of the maps, at least 0; divided by its largest value, if
        that is not 0.

    Source:
        Selvaraju et al., Grad-CAM, ICCV 2017, equations 1 and 2; Zhou et al., CAM, CVPR 2016.
    """
    network = local.model
    pooled = [x for x in network.layers if isinstance(x, keras.layers.GlobalAveragePooling2D)]
    if not pooled:
        raise ValueError("heat maps need a network with a GlobalAveragePooling2D layer.")
    pooling = pooled[-1]
    head = network.get_layer("head")
    watched = keras.Model(network.input, [pooling.input, head.input])
    columns = [local.classes.index(name) for name in classes]
    with tf.GradientTape(persistent=True) as tape:
        maps, features = watched(normalised(pixels[None], how), training=False)
        logits = tf.unstack(
            tf.gather(tf.matmul(features, head.kernel) + head.bias, columns, axis=1)[0]
        )
    heats = {}
    for name, logit in zip(classes, logits, strict=True):
        weights = tf.reduce_mean(tape.gradient(logit, maps), axis=(1, 2), keepdims=True)
        heat = tf.nn.relu(tf.reduce_sum(weights * maps, axis=3))[0].numpy()
        heats[name] = heat / heat.max() if heat.max() else heat
    return heats
