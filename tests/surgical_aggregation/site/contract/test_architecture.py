import keras
import numpy as np
import pytest
from keras import layers

from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.site.contract.architecture import (
    batch_norm_layers,
    body_variables,
    head_layer,
    initial_body,
    variable_kinds,
)
from surgical_aggregation.site.contract.body_shapes import check_body, shapes_of
from surgical_aggregation.site.contract.site import SiteError
from tiny_site import FEATURES, tiny_model

NAMES = ("gamma", "beta", "moving_mean", "moving_variance")


def network(*inner, name=None):
    """Layers one after the other; the paths of their variables begin with the layers' names."""
    outputs = inputs = keras.Input((3,))
    for layer in inner:
        outputs = layer(outputs)
    return keras.Model(inputs, outputs, name=name)


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (layers.Dense(1, name="head"), None),
        (layers.Dense(2, name="head"), "each of 1 classes; it has 2"),
        (layers.Dense(1, name="predictions"), "'head'; got Dense called 'predictions'"),
        (layers.Dropout(0.1, name="head"), "got Dropout called 'head'"),
    ],
)
def test_a_head_is_a_last_dense_layer_of_that_name_with_a_unit_per_class(layer, reason):
    model = network(layers.Dense(3), layer)
    if reason is None:
        assert head_layer(model, ("A",)) is layer
    else:
        with pytest.raises(SiteError, match=reason):
            head_layer(model, ("A",))


class Counting(layers.BatchNormalization):
    """Batch normalisation that counts the batches it has seen."""

    def build(self, shape):
        super().build(shape)
        self.seen = self.add_weight(name="seen", shape=(), dtype="int32", initializer="zeros")


class Block(layers.Layer):
    """A layer that holds others, as residual blocks are often written."""

    def __init__(self):
        super().__init__(name="block")
        self.dense = layers.Dense(3, name="dense")
        self.bn = layers.BatchNormalization(name="in_a_layer")

    def call(self, x, training=None):
        return self.bn(self.dense(x), training=training)


def test_kinds_of_variables_are_what_the_layers_are_however_nested_and_named():
    adapted = layers.Normalization(name="adapted")
    adapted.adapt(np.ones((4, 3), np.float32))
    model = network(
        adapted,
        layers.Dropout(0.1, seed=0),
        Counting(name="counting"),
        layers.LayerNormalization(name="ln"),
        network(layers.BatchNormalization(name="in_a_model", scale=False)),
        Block(),
        layers.Reshape((1, 3)),
        layers.TimeDistributed(layers.BatchNormalization(name="in_a_wrapper")),
        layers.Flatten(),
        layers.Dense(3, name="frozen", trainable=False),
        layers.BatchNormalization(name="late", center=False, trainable=False),
        layers.Dense(1, name="head"),
    )
    found = batch_norm_layers(model)
    nested = {"in_a_model", "in_a_layer", "in_a_wrapper"}
    assert {layer.name for layer in found} == {"counting", "late", *nested}
    kinds = variable_kinds(model)
    assert kinds.constant == {
        *(f"adapted/{name}" for name in ("mean", "variance", "count")),
        "counting/seen", "frozen/kernel", "frozen/bias",
    }  # fmt: skip
    assert kinds.batch_norm == {v.path for layer in found for v in layer.weights} - kinds.constant
    assert {"late/gamma", "late/moving_mean"} < kinds.batch_norm
    body = initial_body(model).variables
    assert isinstance(body["adapted/count"], np.ndarray)  # though it has no dimension
    assert body.keys() - kinds.batch_norm - kinds.constant == {
        "ln/gamma", "ln/beta", "block/dense/kernel", "block/dense/bias",
    }  # fmt: skip


def test_two_variables_of_one_path_are_refused():
    towers = [network(layers.Dense(2, name="fc"), name=name) for name in ("one", "other")]
    inputs = keras.Input((3,))
    both = layers.Concatenate()([tower(inputs) for tower in towers])
    model = keras.Model(inputs, layers.Dense(1, name="head")(both))
    with pytest.raises(SiteError, match=r"2 paths .*\['fc/bias', 'fc/kernel'\]"):
        body_variables(model)


def test_an_initial_body_leaves_the_head_out_and_says_what_it_is():
    model = tiny_model(3)
    checkpoint = initial_body(model, backbone="tiny", seed=4)
    own = body_variables(model)
    assert own.keys() == {"dense/kernel", "dense/bias", *(f"bn/{name}" for name in NAMES)}
    assert checkpoint.variables.keys() == own.keys()
    for path, variable in own.items():
        assert checkpoint.variables[path].tobytes() == variable.numpy().tobytes()
    assert checkpoint.manifest == {
        "head_features": FEATURES,
        "initial_body_sha256": digest(checkpoint.variables),
        **variable_kinds(model).facts(),
        "backbone": "tiny",
        "seed": 4,
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("bn/gamma", None),
        ("conv/kernel", np.zeros(FEATURES)),
        ("dense/kernel", np.zeros((5, FEATURES))),
    ],
)
def test_a_body_with_a_variable_too_few_too_many_or_of_another_shape_is_refused(path, value):
    own = body_variables(tiny_model(1))
    body = {path: v.numpy() for path, v in own.items()}
    check_body(shapes_of(body), shapes_of(own))
    unread = dict.fromkeys(own) | {"dense/scale": ()}  # ciphertexts, and a variable of no dimension
    check_body(unread, shapes_of(own) | {"dense/scale": ()})
    body[path] = value
    if value is None:
        del body[path]
    with pytest.raises(SiteError, match=rf"differ in 1 variables, e\.g\. \['{path}'\]"):
        check_body(shapes_of(body), shapes_of(own))
