import numpy as np
import pandas as pd
import pytest
from cxr_study.training.trained_network import restore

from cxr_study.evaluation import predictions
from cxr_study.evaluation.predictions import Predictor
from cxr_study.evaluation.test_split import TestSplit
from cxr_study.training.network_facts import Network
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.wire import variables as wire

NETWORK = Network("small_densenet", 32, hidden=0)
CLASSES = ("Edema", "Hernia", "Mass")


@pytest.fixture(scope="module")
def model():
    """A tiny network with a head of its own."""
    from cxr_study.training.network import build

    model = build("small_densenet", len(CLASSES), image_size=32)
    rng = np.random.default_rng(0)
    head = model.get_layer("head")
    head.set_weights([rng.normal(size=value.shape) for value in head.get_weights()])
    return model


@pytest.fixture
def split():
    """Three of five images, in an order of their own."""
    pixels = np.random.default_rng(1).integers(0, 256, (5, 32, 32)).astype(np.uint8)
    table = pd.DataFrame({"image": ["d", "a", "c"]})
    return TestSplit("nih", table, pixels, np.array([3, 0, 2]), frozenset(), pd.DataFrame())


def checkpoint(model):
    from surgical_aggregation.site.contract.architecture import initial_body

    kernel, bias = model.get_layer("head").get_weights()
    columns = {name: (kernel[:, k], bias[k : k + 1]) for k, name in enumerate(CLASSES)}
    return Checkpoint(wire.join(initial_body(model).variables, columns))


def test_probabilities_are_the_networks_on_the_images_of_the_table_each_read_once(
    model, split, monkeypatch
):
    from cxr_study.training import input_pipeline

    whole, read = input_pipeline.dataset, []

    def counted(*args, **options):
        read.append(options["rows"].tolist())
        return whole(*args, **options)

    monkeypatch.setattr(input_pipeline, "dataset", counted)
    predicted = Predictor(NETWORK).predict(checkpoint(model), split)
    assert read == [[3, 0, 2]]
    found, features = predicted.probabilities, predicted.features
    images = whole(split.pixels[[3, 0, 2]], np.zeros((3, 3)), batch_size=3)
    expected = model.predict(images, verbose=0)
    assert list(found) == list(CLASSES)
    assert {*found.dtypes, features.dtype} == {np.dtype(np.float32)}
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.ptp(expected, axis=0).min() > 1e-4  # in another order they would differ
    kernel, bias = model.get_layer("head").get_weights()
    weighed = 1 / (1 + np.exp(-(features @ kernel + bias)))
    np.testing.assert_allclose(found, weighed, rtol=1e-5)


def test_a_model_that_predicts_nan_is_refused(model, split):
    broken = checkpoint(model)
    broken.variables["head/Mass/bias"][:] = np.nan
    with pytest.raises(ValueError, match=r"predicts NaN.*learning rate too high"):
        Predictor(NETWORK).predict(broken, split)


def test_models_of_the_same_classes_share_a_network_and_keep_their_variables(
    model, split, monkeypatch
):
    built = []

    def counted(given, network):
        built.append(sorted(wire.classes_of(given.variables)))
        return restore(given, network)

    monkeypatch.setattr(predictions, "restore", counted)
    one, other = checkpoint(model), checkpoint(model)
    for name in other.variables:
        other.variables[name] = other.variables[name] * np.float32(0.5)
    fewer = Checkpoint({n: v for n, v in one.variables.items() if "Mass" not in n})
    predictor = Predictor(NETWORK)
    for each in (one, other, fewer, one):
        alone = Predictor(NETWORK).predict(each, split).probabilities
        pd.testing.assert_frame_equal(predictor.predict(each, split).probabilities, alone)
    assert len(built) == 4 + 2
