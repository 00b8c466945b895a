import keras
import numpy as np
import pytest
from keras import layers

from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.site.contract import architecture
from surgical_aggregation.site.contract.site import SiteError, check_body, shapes_of
from surgical_aggregation.site.training.local_model import LocalModel
from tiny_site import FEATURES, tiny_model

NAMES = ("gamma", "beta", "moving_mean", "moving_variance")


def network(*inner, name=None):
    """Layers one after the other; the paths of their variables begin with the layers' names."""
    outputs = inputs = keras.Input((3,))
    for layer in inner:
        outputs = layer(outputs)
    return keras.Model(inputs, outputs, name=name)


@pytest.mark.parametrize(("layer", "reason"), [
    (layers.Dense(1, name="head"), None),
    (layers.Dense(2, name="head"), "each of 1 classes; it has 2"),
    (layers.Dense(1, name="predictions"), "'head'; got Dense called 'predictions'"),
    (layers.Dropout(0.1, name="head"), "got Dropout called 'head'"),
])  # fmt: skip
def test_a_head_is_a_last_dense_layer_of_that_name_with_a_unit_per_class(layer, reason):
    model = network(layers.Dense(3), layer)
    if reason is None:
        assert architecture.head_layer(model, ("A",)) is layer
    else:
        with pytest.raises(SiteError, match=reason):
            architecture.head_layer(model, ("A",))


def test_two_variables_of_one_path_are_refused():
    towers = [network(layers.Dense(2, name="fc"), name=name) for name in ("one", "other")]
    inputs = keras.Input((3,))
    both = layers.Concatenate()([tower(inputs) for tower in towers])
    model = keras.Model(inputs, layers.Dense(1, name="head")(both))
    with pytest.raises(SiteError, match=r"2 paths .*\['fc/bias', 'fc/kernel'\]"):
        architecture.body_variables(model)


def test_an_initial_body_leaves_the_head_out_and_says_what_it_is():
    model = tiny_model(3)
    checkpoint = architecture.initial_body(model, backbone="tiny", seed=4)
    own = architecture.body_variables(model)
    paths = {"dense/kernel", "dense/bias", *(f"bn/{name}" for name in NAMES)}
    assert checkpoint.variables.keys() == own.keys() == paths
    for path, variable in own.items():
        assert checkpoint.variables[path].tobytes() == variable.numpy().tobytes()
    facts = {"head_features": FEATURES, "initial_body_sha256": digest(checkpoint.variables)}
    facts |= architecture.variable_kinds(model).facts()
    assert checkpoint.manifest == {**facts, "backbone": "tiny", "seed": 4}


@pytest.mark.parametrize(("path", "value"), [
    ("bn/gamma", None), ("conv/kernel", np.zeros(4)), ("dense/kernel", np.zeros((5, FEATURES))),
])  # fmt: skip
def test_a_body_with_a_variable_too_few_too_many_or_of_another_shape_is_refused(path, value):
    own = architecture.body_variables(tiny_model(1))
    body = {path: v.numpy() for path, v in own.items()}
    check_body(shapes_of(body), shapes_of(own))
    unread = dict.fromkeys(own) | {"dense/scale": ()}  # ciphertexts, and a variable of no dimension
    check_body(unread, shapes_of(own) | {"dense/scale": ()})
    changed = {name: v for name, v in {**body, path: value}.items() if v is not None}
    with pytest.raises(SiteError, match=rf"differ in 1 variables, e\.g\. \['{path}'\]"):
        check_body(shapes_of(changed), shapes_of(own))


IMAGES = np.random.default_rng(0).uniform(0, 9, (2, 4, 4, 3)).astype(np.float32)
MEAN, VARIANCE = np.array([1, 2, 3]), np.array([4, 9, 16])
KINDS = {
    "of variables": ({}, MEAN, VARIANCE), "of all values": ({"axis": None}, 5, 4),
    "of each pixel": ({"axis": (1, 2, 3)}, IMAGES[0], IMAGES[1]),
    "of numbers": ({"mean": MEAN, "variance": VARIANCE}, MEAN, VARIANCE),
}  # fmt: skip


def normalising(nested=False, **how):
    inputs = keras.Input((4, 4, 3))
    layer = layers.Normalization(name="normal", **how)
    if nested:
        inside = keras.Input((4, 4, 3))
        layer = keras.Model(inside, layer(inside), name="inner")
    features = layers.GlobalAveragePooling2D()(layer(inputs))
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid", name="head")(features))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("how", "mean", "variance"), KINDS.values(), ids=KINDS)
def test_a_received_body_normalises_also_after_the_first_outputs(how, mean, variance, nested):
    local = LocalModel(normalising(nested, **how), ("A",))
    local.outputs(IMAGES)  # which traces the network
    values = {"mean": mean, "variance": variance, "count": 3}
    body = architecture.initial_body(local.model).variables
    local.set_body({path: np.array(values[path.split("/")[-1]]) for path in body})
    wanted = ((IMAGES - mean) / np.sqrt(variance)).mean(axis=(1, 2))
    np.testing.assert_allclose(local.outputs(IMAGES)[0], wanted, rtol=1e-5, atol=1e-5)


def test_a_normalisation_over_other_axes_than_the_last_ones_is_refused():
    with pytest.raises(SiteError, match=r"'normal' must be over the last axes.*axis \(1,\)"):
        LocalModel(normalising(axis=1), ("A",))
