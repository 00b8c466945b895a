"""Normalisations inside of a network follow their variables."""

import keras
import numpy as np
import pytest
from keras import layers

from surgical_aggregation.site.contract.architecture import initial_body
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.training.keras_model import LocalModel

IMAGES = np.random.default_rng(0).uniform(0, 9, (2, 4, 4, 3)).astype(np.float32)
MEAN, VARIANCE = np.array([1, 2, 3]), np.array([4, 9, 16])
KINDS = {
    "of variables": ({}, MEAN, VARIANCE),
    "of all values": ({"axis": None}, 5, 4),
    "of each pixel": ({"axis": (1, 2, 3)}, IMAGES[0], IMAGES[1]),
    "of numbers": ({"mean": MEAN, "variance": VARIANCE}, MEAN, VARIANCE),
}


def model(nested=False, **how):
    inputs = keras.Input((4, 4, 3))
    layer = layers.Normalization(name="normal", **how)
    if nested:
        inside = keras.Input((4, 4, 3))
        layer = keras.Model(inside, layer(inside), name="inner")
    features = layers.GlobalAveragePooling2D()(layer(inputs))
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid", name="head")(features))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_received_body_normalises_also_after_the_first_outputs(kind, nested):
    how, mean, variance = KINDS[kind]
    local = LocalModel(model(nested, **how), ("A",))
    local.outputs(IMAGES)  # which traces the network
    values = {"mean": mean, "variance": variance, "count": 3}
    body = initial_body(local.model).variables
    local.set_body({path: np.array(values[path.split("/")[-1]]) for path in body})
    wanted = ((IMAGES - mean) / np.sqrt(variance)).mean(axis=(1, 2))
    np.testing.assert_allclose(local.outputs(IMAGES)[0], wanted, rtol=1e-5, atol=1e-5)


def test_a_normalisation_over_other_axes_than_the_last_ones_is_refused():
    with pytest.raises(SiteError, match=r"'normal' needs to be over the last axes.*axis \(1,\)"):
        LocalModel(model(axis=1), ("A",))
