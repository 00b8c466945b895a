import keras
import numpy as np
import pytest

from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.site.contract.architecture import (
    batch_norm_layers,
    body_variables,
    check_body,
    head_layer,
    initial_body,
    variable_kinds,
)
from surgical_aggregation.site.contract.site import SiteError
from tiny_site import FEATURES, tiny_model


def test_the_head_is_the_last_layer():
    model = tiny_model(2)
    assert head_layer(model, ("Edema", "Mass")) is model.layers[-1]


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (keras.layers.Dense(2, name="head"), "each of 1 classes; it has 2"),
        (keras.layers.Dense(1, name="predictions"), "'head'; got Dense called 'predictions'"),
        (keras.layers.Dropout(0.1, name="head"), "got Dropout called 'head'"),
    ],
)
def test_a_head_is_a_dense_layer_of_that_name_with_a_unit_per_class(layer, reason):
    with pytest.raises(SiteError, match=reason):
        head_layer(keras.Sequential([keras.Input((3,)), layer]), ("A",))


NAMES = ("gamma", "beta", "moving_mean", "moving_variance")


class Counting(keras.layers.BatchNormalization):
    """Batch normalisation that counts the batches it has seen."""

    def build(self, shape):
        super().build(shape)
        self.seen = self.add_weight(name="seen", shape=(), dtype="int32", initializer="zeros")


class Block(keras.layers.Layer):
    """A layer that holds others, as residual blocks are often written."""

    def __init__(self):
        super().__init__(name="block")
        self.dense = keras.layers.Dense(2, name="dense")
        self.bn = keras.layers.BatchNormalization(name="bn")

    def call(self, x, training=None):
        return self.bn(self.dense(x), training=training)


def network(*layers, name=None):
    """Layers one after the other; the paths of their variables begin with the layers' names."""
    outputs = inputs = keras.Input((3,))
    for layer in layers:
        outputs = layer(outputs)
    return keras.Model(inputs, outputs, name=name)


HEAD = {"units": 1, "name": "head"}


class TestVariableKinds:
    def kinds(self, *layers):
        return variable_kinds(network(*layers, keras.layers.Dense(**HEAD)))

    def test_batch_normalisation_is_what_the_layer_is_and_not_what_its_variables_are_called(self):
        kinds = self.kinds(
            keras.layers.BatchNormalization(name="a"), keras.layers.LayerNormalization(name="b")
        )
        assert kinds.batch_norm == {f"a/{name}" for name in NAMES}
        assert kinds.constant == set()

    @pytest.mark.parametrize("how", ["a model", "a layer", "a wrapper"])
    def test_it_is_found_inside_of(self, how):
        inside = {
            "a model": lambda: [network(keras.layers.BatchNormalization(scale=False))],
            "a layer": lambda: [Block()],
            "a wrapper": lambda: [
                keras.layers.Reshape((1, 3)),
                keras.layers.TimeDistributed(keras.layers.BatchNormalization()),
                keras.layers.Flatten(),
            ],
        }[how]()
        model = network(*inside, keras.layers.Dense(**HEAD))
        (layer,) = batch_norm_layers(model)
        assert variable_kinds(model).batch_norm == {v.path for v in layer.weights}

    def test_what_a_layer_has_adapted_to_and_what_is_counted_is_constant(self):
        adapted = keras.layers.Normalization(name="n")
        adapted.adapt(np.ones((4, 3), np.float32))
        kinds = self.kinds(adapted, keras.layers.Dropout(0.1, seed=0), Counting(name="bn"))
        assert kinds.constant == {"n/mean", "n/variance", "n/count", "bn/seen"}
        assert kinds.batch_norm == {f"bn/{name}" for name in NAMES}
        body = initial_body(network(adapted, keras.layers.Dense(**HEAD)))
        assert isinstance(body.variables["n/count"], np.ndarray)  # though it has no dimension

    def test_frozen_layers_are_constant_but_batch_normalisation_stays_what_it_is(self):
        kinds = self.kinds(
            keras.layers.Dense(2, name="a", trainable=False),
            keras.layers.BatchNormalization(name="b", center=False, trainable=False),
        )
        assert kinds.constant == {"a/kernel", "a/bias"}
        assert kinds.batch_norm == {"b/gamma", "b/moving_mean", "b/moving_variance"}


class TestBodyVariables:
    def test_are_all_but_the_heads(self):
        assert {*body_variables(tiny_model(2))} == {
            "dense/kernel", "dense/bias",
            *(f"bn/{name}" for name in NAMES),
        }  # fmt: skip

    def test_two_of_one_path_are_refused(self):
        towers = [network(keras.layers.Dense(2, name="fc"), name=name) for name in ("one", "other")]
        inputs = keras.Input((3,))
        both = keras.layers.Concatenate()([tower(inputs) for tower in towers])
        model = keras.Model(inputs, keras.layers.Dense(**HEAD)(both))
        with pytest.raises(SiteError, match=r"2 paths .*\['fc/bias', 'fc/kernel'\]"):
            body_variables(model)


class TestInitialBody:
    def test_leaves_the_head_out_and_says_what_it_is(self):
        model = tiny_model(3)
        checkpoint = initial_body(model, backbone="tiny", seed=4)
        assert checkpoint.variables.keys() == body_variables(model).keys()
        for path, variable in body_variables(model).items():
            assert checkpoint.variables[path].tobytes() == variable.numpy().tobytes()
        assert checkpoint.manifest == {
            "head_features": FEATURES,
            "initial_body_sha256": digest(checkpoint.variables),
            **variable_kinds(model).facts(),
            "backbone": "tiny",
            "seed": 4,
        }


class TestCheckBody:
    def own(self):
        return {v.path: v for v in tiny_model(1).variables if not v.path.startswith("head/")}

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("bn/gamma", None),
            ("conv/kernel", np.zeros(FEATURES)),
            ("dense/kernel", np.zeros((5, FEATURES))),
        ],
    )
    def test_a_variable_too_few_too_many_or_of_another_shape_is_named(self, path, value):
        own = self.own()
        body = {path: v.numpy() for path, v in own.items()}
        check_body(body, own)
        body[path] = value
        if value is None:
            del body[path]
        with pytest.raises(SiteError, match=rf"differ in 1 variables, e\.g\. \['{path}'\]"):
            check_body(body, own)
