"""Two rounds of a network with every kind of variable: site, wire, aggregator, merge, site."""

import keras
import numpy as np
import pytest

from body_statistics import with_statistics
from one_process import SITES, OneProcess
from surgical_aggregation.site.contract.architecture import initial_body

SHAPE = (6, 6, 3)
NAMES = ("gamma", "beta", "moving_mean", "moving_variance")
LAYERS = ("bn", "stage_bn", "block/bn", "each/wrapped", "late", "counting")
ABSENT = {"each/wrapped/gamma", "late/beta"}
BATCH_NORM = {f"{layer}/{name}" for layer in LAYERS for name in NAMES} - ABSENT
CONSTANT = {f"adapted/{name}" for name in ("mean", "variance", "count")}
CONSTANT |= {"frozen/kernel", "counting/seen"}
TRAINED = {
    "stem/kernel", "stem/bias", "stage_conv/kernel", "stage_conv/bias", "block/conv/kernel",
    "block/conv/bias", "ln/gamma", "ln/beta", "stage_ln/gamma", "stage_ln/beta", "scale/weight",
}  # fmt: skip
STRATEGIES = {
    "fedavg": {"optimizer": "fedavgm", "proximal": 0.1}, "fedbn": {"send": "differences"},
    "fedbn+": {"proximal": 0.1}, "fixbn": {"proximal": 0.1},
}  # fmt: skip
"""Strategy -> what else is on in its run."""


class Counting(keras.layers.BatchNormalization):
    """Batch normalisation that counts the batches it has seen."""

    def build(self, shape):
        super().build(shape)
        self.seen = self.add_weight((), "zeros", "int32", trainable=False, name="seen")


class Scale(keras.layers.Layer):
    """One number, without a dimension."""

    def build(self, shape):
        self.weight = self.add_weight(shape=(), initializer="ones", name="weight")

    def call(self, x):
        return self.weight * x


class Block(keras.layers.Layer):
    """A residual block as a layer, which holds its layers itself."""

    def __init__(self):
        super().__init__(name="block")
        self.conv = keras.layers.Conv2D(4, 3, padding="same", name="conv")
        self.bn = keras.layers.BatchNormalization(name="bn")

    def call(self, x, training=None):
        return x + self.bn(self.conv(x), training=training)


def network(classes):
    layers = keras.layers
    adapted = layers.Normalization(name="adapted")
    adapted.adapt(np.random.default_rng(0).normal(0.3, 2, (8, *SHAPE)))
    inner = inside = keras.Input((6, 6, 4))
    for layer in (
        layers.Conv2D(4, 1, name="stage_conv"), layers.BatchNormalization(name="stage_bn"),
        layers.LayerNormalization(name="stage_ln"),
    ):  # fmt: skip
        inner = layer(inner)
    x = inputs = keras.Input(SHAPE)
    for layer in (
        adapted, layers.Conv2D(4, 3, padding="same", name="stem"),
        layers.BatchNormalization(name="bn"), layers.ReLU(), keras.Model(inside, inner), Block(),
        layers.LayerNormalization(name="ln"), Scale(name="scale"), layers.Dropout(0.1, seed=0),
        layers.TimeDistributed(layers.BatchNormalization(name="wrapped", scale=False), name="each"),
        layers.BatchNormalization(name="late", center=False, trainable=False),
        Counting(name="counting"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(4, use_bias=False, trainable=False, name="frozen"),
    ):  # fmt: skip
        x = layer(x)
    return keras.Model(inputs, layers.Dense(classes, activation="sigmoid", name="head")(x))


@pytest.fixture(scope="module")
def initial():
    keras.utils.set_random_seed(0)
    return with_statistics(initial_body(network(1)))


@pytest.fixture(scope="module", params=STRATEGIES)
def run(request, initial, tmp_path_factory):
    """A strategy, its federation after two rounds, the rounds, and the sites' evaluated models."""
    folder = tmp_path_factory.mktemp("sites")
    with_all = STRATEGIES[request.param]
    federation = OneProcess(initial, network, SHAPE, folder, request.param, **with_all)
    rounds = [federation.train() for _ in range(2)]
    return request.param, federation, rounds, federation.evaluate()


def kept(strategy):
    statistics = {path for path in BATCH_NORM if "/moving_" in path}
    return CONSTANT | {"fedavg": set(), "fixbn": statistics}.get(strategy, BATCH_NORM)


def body(variables):
    return {path: value for path, value in variables.items() if not path.startswith("head/")}


def test_a_site_sends_all_that_it_trained_but_what_the_strategy_keeps_there(run, initial):
    strategy, _, rounds, _ = run
    assert initial.variables.keys() == BATCH_NORM | CONSTANT | TRAINED
    own = BATCH_NORM if strategy == "fedbn" else set()
    for made in rounds:
        assert made.refused == {}
        for site, sent in made.sent.items():
            assert body(sent).keys() == initial.variables.keys() - kept(strategy)
            before, after = body(made.received[site]), made.trained[site]
            moved = {path for path in before if before[path].tobytes() != after[path].tobytes()}
            assert moved >= TRAINED and moved - sent.keys() <= own


def test_the_global_model_has_the_mean_of_what_was_sent_and_else_the_initial_body(run, initial):
    strategy, _, rounds, _ = run
    for made in rounds[:1]:  # in the second the server's optimizer has a momentum
        for path in TRAINED | BATCH_NORM - kept(strategy):
            mean = np.mean([made.trained[site][path] for site in SITES], axis=0, dtype=np.float64)
            np.testing.assert_allclose(made.model.body[path], mean, rtol=1e-5, atol=1e-7)
    for path in kept(strategy):
        value, first = rounds[1].model.body[path], initial.variables[path]
        assert (value.dtype, value.shape) == (first.dtype, first.shape)
        assert value.tobytes() == first.tobytes()


def test_sites_have_the_global_model_and_with_fedbn_their_own_batch_normalisation(run):
    strategy, federation, rounds, evaluated = run
    for site, found in evaluated.items():
        own = BATCH_NORM if strategy == "fedbn" else set()
        for path, value in federation.model.body.items():
            expected = rounds[1].trained[site][path] if path in own else value
            assert found[path].tobytes() == expected.tobytes()
