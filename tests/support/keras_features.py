"""Networks of keras.applications with weights worth comparing: Keras's own way, and ours."""

import importlib
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from cxr_study.training.backbones import APPLICATIONS, normalisation
from surgical_aggregation.checkpoints.checkpoint import Checkpoint

CLASSES = ("Edema", "Mass")
PREPARED = {
    "convnexttiny": "by variables of the network",
    "efficientnetb0": "by variables, and a factor of ImageNet's weights",
    "mobilenetv3small": "scaled by the network",
    "densenet121": "mean and standard deviation of ImageNet",
    "mobilenetv2": "to [-1, 1]",
    "resnet50": "blue first, mean of ImageNet",
}
"""A small network for each way to prepare pixels; all are in benchmarks/keras_networks.csv."""


def side_of(name):
    """The least that Keras builds all of them for, about."""
    return 75 if name.startswith(("inception", "xception")) else 32


def pixels_for(name):
    return np.random.default_rng(1).integers(0, 256, (4, *[side_of(name)] * 2)).astype(np.uint8)


def application(name, weights):
    import keras

    keras.backend.clear_session()
    made = getattr(keras.applications, APPLICATIONS[name])
    shape = (side_of(name), side_of(name), 3)
    return made(include_top=False, weights=weights, input_shape=shape, pooling="avg")


def write_weights(name, path):
    """A weights file in which nothing is as in a new network, but that kernels are random.

    Returns Keras's network that has them.
    """
    rng = np.random.default_rng(2)
    network = application(name, None)
    # The deepest are chaotic with such gammas: Keras's own features differ by 2 standard deviations
    # where the pixels do by 1e-7.
    calm = {"efficientnetv2m": 0.9, "efficientnetv2l": 0.8}.get(name, 1.0)
    for variable in network.weights[:-2]:  # but the head's
        if variable.name == "gamma":
            variable.assign(calm * rng.uniform(0.2, 1.2, variable.shape))
        elif variable.name in ("variance", "moving_variance", "layer_scale"):
            variable.assign(rng.uniform(0.2, 1.2, variable.shape))
        elif variable.name == "count":
            variable.assign(5)
        elif len(variable.shape) < 2:
            variable.assign(rng.uniform(-0.3, 0.7, variable.shape))
    network.save_weights(path)
    network.load_weights(path)  # of which Normalization makes constants
    return network


@contextmanager
def downloading(path):
    """Keras finds a file of ours where it would download ImageNet's weights."""
    import keras

    with mock.patch.object(keras.src.utils.file_utils, "get_file", lambda *_, **__: str(path)):
        yield


def without_noise(model):
    import keras

    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0
    return model


def normalises(network):
    import keras

    return any(isinstance(layer, keras.layers.Normalization) for layer in network.layers)


def keras_says(name, network, train):
    """Features of `pixels_for` when predicting and, if asked for, in training, by Keras alone."""
    import keras

    module = importlib.import_module(getattr(keras.applications, APPLICATIONS[name]).__module__)
    colours = np.repeat(pixels_for(name)[..., None], 3, axis=3).astype(np.float32)
    images = module.preprocess_input(colours)
    ways = (False, True) if train else (False,)
    return [np.asarray(without_noise(network)(images, training=way)) for way in ways]


def local_model(name, weights):
    """A site's network that got the initial body of these weights, and that body's checkpoint."""
    from cxr_study.training.network import Network, build
    from surgical_aggregation.site.contract.architecture import initial_body
    from surgical_aggregation.site.training.local_model import LocalModel
    from surgical_aggregation.site.training.training_options import TrainingOptions
    from surgical_aggregation.wire import variables as wire

    side = side_of(name)
    network = build(name, len(CLASSES), image_size=side, weights=weights)
    body = initial_body(network)
    if normalises(network):  # by constants, perhaps
        network = build(name, len(CLASSES), image_size=side)
    for variable in network.weights[:-2]:  # but the head's
        variable.assign(np.full(variable.shape, 9))
    local = LocalModel(without_noise(network), CLASSES, TrainingOptions(strategy="fedavg"))
    local.set_body(body.variables)
    kernel, bias = local.model.get_layer("head").get_weights()
    columns = {one: (kernel[:, k], bias[k : k + 1]) for k, one in enumerate(CLASSES)}
    manifest = {**body.manifest, **Network(name, side, 0).facts()}
    manifest["classes"] = {one: {"sites": ["a"], "last_round": 1} for one in CLASSES}
    return local, Checkpoint(wire.join(body.variables, columns), manifest)


class Found(NamedTuple):
    """How far from Keras: features, in standard deviations; loss of a training step, relatively."""

    features: float
    loss: float
    checkpoint: Checkpoint


def differences(name, weights, own=None, train=None):
    """Compare a site's network with Keras's `own`, or the one of these weights.

    `loss` is that of a training step, by default where a layer normalises; else 0.
    """
    import tensorflow as tf

    from cxr_study.training.input_pipeline import normalised
    from surgical_aggregation.wire import variables as wire

    own = own or application(name, weights)
    train = normalises(own) if train is None else train
    wanted, *in_training = keras_says(name, own, train)
    local, checkpoint = local_model(name, weights)
    body, _ = wire.split(checkpoint.variables)
    assert body.keys() == {variable.path for variable in own.weights}
    images = normalised(pixels_for(name), normalisation(name))
    apart = np.abs(local.outputs(images)[0] - wanted).max() / wanted.std()
    off = 0.0
    for features in in_training:
        truth = np.eye(2, dtype=np.float32)[np.arange(len(images)) % 2]
        logits = features.astype(float) @ local.model.get_layer("head").kernel.numpy()
        loss = np.mean(np.logaddexp(0, logits) - truth * logits)
        off = abs(local.train(tf.data.Dataset.from_tensors((images, truth))) / loss - 1)
    return Found(float(apart), float(off), checkpoint)


def loaded(checkpoint, path):
    """The checkpoint, saved and loaded to predict with."""
    from cxr_study import load_model
    from surgical_aggregation.checkpoints.checkpoint import save

    save(checkpoint, Path(path))
    return load_model(path)


def exported(model, folder, formats=("package", "savedmodel", "onnx")):
    """Package a model and export it; format -> "" or why it was refused."""
    from cxr_study.models import export_model
    from cxr_study.models.export_model import package

    ways = {"package": lambda: package(model, "# Card", folder / "package")}
    for to in ("savedmodel", "onnx"):
        out = folder / export_model.default_name(Path(to), to)
        ways[to] = lambda to=to, out=out: export_model.export(model, to, out)
    found = {}
    for name in formats:
        try:
            ways[name]()
            found[name] = ""
        except ValueError as error:
            found[name] = str(error)
    return found
