import re

import numpy as np
import pytest

from cxr_study.training.network import BACKBONES, ModelError, build
from surgical_aggregation.aggregation.variable_kinds import kinds_of
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.site.contract.architecture import initial_body


def body_paths(model):
    return [v.path for v in model.weights if not v.path.startswith("head/")]


@pytest.mark.parametrize(
    ("backbone", "arrays", "numbers"),
    [("tiny_densenet", 14, 1_304), ("small_densenet", 64, None), ("densenet121", 604, 7_037_504)],
)
def test_the_body_has_its_size_and_the_same_unique_paths_in_every_build(backbone, arrays, numbers):
    few, many = (build(backbone, classes, image_size=32) for classes in (2, 20))
    body = initial_body(few).variables
    assert len(body) == arrays
    assert numbers in (None, sum(value.size for value in body.values()))
    assert len(set(body_paths(few))) == len(body_paths(few))
    assert body_paths(few) == body_paths(many)
    for model, classes in ((few, 2), (many, 20)):
        assert model.layers[-1].name == "head"
        assert model.output_shape == (None, classes)
        head = [v.path for v in model.variables if v.path.startswith("head/")]
        assert head == ["head/kernel", "head/bias"]


def test_outputs_are_probabilities_of_square_images_of_three_channels():
    model = build("small_densenet", 4, image_size=32)
    assert model.input_shape == (None, 32, 32, 3)
    outputs = model.predict(50 * np.random.default_rng(0).normal(size=(3, 32, 32, 3)), verbose=0)
    assert outputs.shape == (3, 4)
    assert np.all((outputs >= 0) & (outputs <= 1))


def test_hidden_layer_is_there_only_when_asked_for():
    plain = build("small_densenet", 3, image_size=32)
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


class TestMixedPrecision:
    def test_variables_are_the_same_and_the_outputs_float32(self, mixed):
        import keras

        model = build("small_densenet", 3, image_size=32, hidden=4)
        outputs, computes = model.output.dtype, model.get_layer("hidden").compute_dtype
        keras.config.set_dtype_policy("float32")
        plain = build("small_densenet", 3, image_size=32, hidden=4)
        wanted = [(v.path, "float32") for v in plain.weights]
        assert [(v.path, v.dtype) for v in model.weights] == wanted
        assert (outputs, computes) == ("float32", "bfloat16")

    @pytest.mark.filterwarnings("ignore:.*bfloat16.*")
    def test_it_trains(self, mixed):
        import tensorflow as tf

        from surgical_aggregation.site.training.keras_model import LocalModel
        from surgical_aggregation.site.training.training_options import TrainingOptions

        tf.keras.utils.set_random_seed(1)
        rng = np.random.default_rng(0)
        images = rng.normal(size=(16, 16, 16, 3)).astype(np.float32)
        labels = (images.mean(axis=(1, 2))[:, :2] > 0).astype(np.float32)
        data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(8)
        network = build("small_densenet", 2, image_size=16)
        options = TrainingOptions(epochs=4, learning_rate=0.01, warmup_epochs=2)
        model = LocalModel(network, ("Edema", "Mass"), options)
        model.warm_up(("Edema", "Mass"), data)
        before = model.evaluate(data, ("Edema", "Mass"))["bce"]
        model.train(data, lambda: False)
        assert model.evaluate(data, ("Edema", "Mass"))["bce"] < before
        assert {value.dtype for value in model.variables().values()} == {np.dtype(np.float32)}


def test_weights_come_from_a_file_of_the_body(tmp_path):
    import keras

    model = build("small_densenet", 3, image_size=32)
    body = keras.Model(model.inputs, model.get_layer("head").input)
    body.save_weights(tmp_path / "body.weights.h5")
    loaded = build("small_densenet", 5, image_size=32, weights=str(tmp_path / "body.weights.h5"))
    assert digest(initial_body(loaded).variables) == digest(initial_body(model).variables)
    fresh = build("small_densenet", 5, image_size=32)
    assert digest(initial_body(fresh).variables) != digest(initial_body(model).variables)


@pytest.mark.parametrize("backbone", ["tiny_densenet", "small_densenet", "densenet121"])
def test_older_checkpoints_of_a_backbone_are_known_to_have_the_same_batch_normalisation(backbone):
    checkpoint = initial_body(build(backbone, 1, image_size=32, hidden=4))
    kinds = kinds_of(checkpoint.manifest, checkpoint.variables)
    assert kinds.batch_norm
    assert kinds_of({}, checkpoint.variables) == kinds


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("name", ["none.weights.h5", "text.weights.h5"])
def test_weights_that_cannot_be_read_are_refused_by_path(tmp_path, backbone, name):
    (tmp_path / "text.weights.h5").write_text("no weights")
    path = str(tmp_path / name)
    with pytest.raises(ModelError, match=rf"weights '{re.escape(path)}' cannot be built: .* path"):
        build(backbone, 2, image_size=32, weights=path)


def test_imagenet_weights_that_cannot_be_downloaded_say_what_to_do(monkeypatch):
    import keras

    def offline(*args, **kwargs):
        raise Exception("URL fetch failure on https://example.org")  # as Keras does

    monkeypatch.setattr(keras.src.applications.densenet.file_utils, "get_file", offline)
    with pytest.raises(ModelError, match=r"URL fetch failure .* cannot download, fetch them else"):
        build("densenet121", 2, image_size=32, weights="imagenet")


@pytest.mark.parametrize(
    ("backbone", "weights", "message"),
    [
        ("vgg", None, r"one of \('densenet121', 'small_densenet', 'tiny_densenet'\); got 'vgg'"),
        ("small_densenet", "imagenet", "small_densenet at 32 pixels with weights 'imagenet'"),
    ],
)
def test_an_unknown_backbone_and_imagenet_weights_of_another_are_refused(
    backbone, weights, message
):
    with pytest.raises(ModelError, match=message):
        build(backbone, 2, image_size=32, weights=weights)
