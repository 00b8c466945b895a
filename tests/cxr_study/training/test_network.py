"""The network, its weights, and the body that is pre-trained for it."""

import re
from unittest.mock import Mock

import numpy as np
import pytest

from cxr_study.training.network import build
from surgical_aggregation.aggregation.batch_norm_strategy import kinds_of
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.site.contract.architecture import initial_body


def body_paths(model):
    return [v.path for v in model.weights if not v.path.startswith("head/")]


@pytest.mark.parametrize(("backbone", "arrays", "numbers"), [
    ("tiny_densenet", 14, 1_304), ("small_densenet", 64, None), ("densenet121", 604, 7_037_504),
])  # fmt: skip
def test_the_body_has_its_size_and_the_same_unique_paths_in_every_build(backbone, arrays, numbers):
    few, many = (build(backbone, classes, image_size=32) for classes in (2, 20))
    checkpoint = initial_body(few)
    body = checkpoint.variables
    assert len(body) == arrays
    assert numbers in (None, sum(value.size for value in body.values()))
    assert len(set(body_paths(few))) == len(body_paths(few))
    assert body_paths(few) == body_paths(many)
    for model, classes in ((few, 2), (many, 20)):
        assert (model.layers[-1].name, model.output_shape) == ("head", (None, classes))
        head = [v.path for v in model.variables if v.path.startswith("head/")]
        assert head == ["head/kernel", "head/bias"]
    kinds = kinds_of(checkpoint.manifest, body)
    assert kinds.batch_norm and kinds_of({}, body) == kinds  # also of older checkpoints


def test_outputs_are_probabilities_and_a_hidden_layer_is_there_only_when_asked_for():
    plain = build("small_densenet", 3, image_size=32)
    assert plain.input_shape == (None, 32, 32, 3)
    outputs = plain.predict(50 * np.random.default_rng(0).normal(size=(3, 32, 32, 3)), verbose=0)
    assert outputs.shape == (3, 3) and np.all((outputs >= 0) & (outputs <= 1))
    hidden = build("small_densenet", 3, image_size=32, hidden=256)
    assert set(body_paths(hidden)) - set(body_paths(plain)) == {"hidden/kernel", "hidden/bias"}
    assert hidden.get_layer("head").kernel.shape == (256, 3)
    assert hidden.get_layer("hidden_dropout").rate == 0.3
    assert len(plain.layers) == len(hidden.layers) - 2


@pytest.fixture
def mixed():
    import keras

    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy("float32")


@pytest.mark.filterwarnings("ignore:.*bfloat16.*")
def test_in_mixed_precision_it_trains_with_the_same_variables_and_outputs_of_float32(request):
    import tensorflow as tf

    from surgical_aggregation.site.training.local_model import LocalModel
    from surgical_aggregation.site.training.training_options import TrainingOptions

    plain = build("small_densenet", 2, image_size=16, hidden=4)
    tf.keras.utils.set_random_seed(1)
    images = np.random.default_rng(0).normal(size=(16, 16, 16, 3)).astype(np.float32)
    labels = (images.mean(axis=(1, 2))[:, :2] > 0).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(8)
    request.getfixturevalue("mixed")
    network = build("small_densenet", 2, image_size=16, hidden=4)
    assert network.output.dtype == "float32"
    assert network.get_layer("hidden").compute_dtype == "bfloat16"
    options = TrainingOptions(epochs=4, learning_rate=0.01, warmup_epochs=2)
    model = LocalModel(network, ("Edema", "Mass"), options)
    model.warm_up(("Edema", "Mass"), data)
    before = model.evaluate(data, ("Edema", "Mass"))["bce"]
    assert {part.dtype.name for part in model.predict(data)} == {"float32"}
    model.train(data, lambda: False)
    assert model.evaluate(data, ("Edema", "Mass"))["bce"] < before
    wanted = [(v.path, "float32") for v in plain.weights]
    assert [(v.path, v.dtype) for v in network.weights] == wanted


@pytest.mark.usefixtures("mixed")
def test_a_network_of_keras_is_in_mixed_precision_too():
    import keras

    network = build("mobilenetv2", 2, image_size=32)
    assert {layer.compute_dtype for layer in network.layers[1:-1]} == {"bfloat16"}
    assert keras.config.dtype_policy().name == "mixed_bfloat16"


def test_weights_come_from_a_file_of_the_body(tmp_path):
    import keras

    model = build("small_densenet", 3, image_size=32)
    body = keras.Model(model.inputs, model.get_layer("head").input)
    body.save_weights(tmp_path / "body.weights.h5")
    for weights in (None, str(tmp_path / "body.weights.h5")):
        built = build("small_densenet", 5, image_size=32, weights=weights)
        same = digest(initial_body(built).variables) == digest(initial_body(model).variables)
        assert same == (weights is not None)


@pytest.mark.parametrize("backbone", ["densenet121", "small_densenet", "efficientnetb0"])
@pytest.mark.parametrize("name", ["none.weights.h5", "text.weights.h5"])
def test_weights_that_cannot_be_read_are_refused_by_path(tmp_path, backbone, name):
    (tmp_path / "text.weights.h5").write_text("no weights")
    path = str(tmp_path / name)
    with pytest.raises(ValueError, match=rf"weights '{re.escape(path)}' cannot be built: .* path"):
        build(backbone, 2, image_size=32, weights=path)


@pytest.mark.parametrize(("backbone", "weights", "message"), [
    ("os:system", None, "backbone must be one of .*; got 'os:system'"),  # no job's name is imported
    ("vgg", None, "backbone must be one of .*'vgg16'.*; got 'vgg'"),
    ("small_densenet", "imagenet", "small_densenet at 32 pixels with weights 'imagenet'"),
    ("densenet121", "imagenet", r"URL fetch failure .* cannot download, fetch them else"),
])  # fmt: skip
def test_unknown_backbones_and_absent_weights_are_refused(backbone, weights, message, monkeypatch):
    import keras

    offline = Mock(side_effect=Exception("URL fetch failure on https://example.org"))  # as Keras
    monkeypatch.setattr(keras.src.applications.densenet.file_utils, "get_file", offline)
    with pytest.raises(ValueError, match=message):
        build(backbone, 2, image_size=32, weights=weights)
    with pytest.raises(ValueError, match="0 to 16384 hidden units; got 1000000000"):
        build("tiny_densenet", 2, image_size=32, hidden=10**9)
