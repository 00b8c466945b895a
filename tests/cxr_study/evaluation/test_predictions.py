import numpy as np
import pandas as pd
import pytest

from cxr_study.evaluation.predictions import Network, PredictionError, predict
from cxr_study.evaluation.test_split import TestSplit
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
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


class TestPredict:
    def test_probabilities_are_the_networks_on_the_images_of_the_table(self, model, split):
        from cxr_study.training.input_pipeline import dataset

        found = predict(checkpoint(model), NETWORK, split).probabilities
        pixels = split.pixels[[3, 0, 2]]
        expected = model.predict(dataset(pixels, np.zeros((3, 3)), batch_size=3), verbose=0)
        assert list(found) == list(CLASSES)
        assert set(found.dtypes) == {np.dtype(np.float32)}
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert np.ptp(expected, axis=0).min() > 1e-4  # in another order they would differ
        kernel, bias = model.get_layer("head").get_weights()
        features = predict(checkpoint(model), NETWORK, split).features
        assert features.dtype == np.float32
        weighed = 1 / (1 + np.exp(-(features @ kernel + bias)))
        np.testing.assert_allclose(found, weighed, rtol=1e-5)

    def test_every_image_is_read_once(self, model, split, monkeypatch):
        from cxr_study.training import input_pipeline

        whole, made = input_pipeline.dataset, []

        def counted(*args, **options):
            made.append(options["rows"].tolist())
            return whole(*args, **options)

        monkeypatch.setattr(input_pipeline, "dataset", counted)
        predict(checkpoint(model), NETWORK, split)
        assert made == [[3, 0, 2]]

    def test_a_model_that_predicts_nan_is_refused(self, model, split):
        broken = checkpoint(model)
        broken.variables["head/Mass/bias"][:] = np.nan
        with pytest.raises(PredictionError, match=r"predicts NaN.*learning rate too high"):
            predict(broken, NETWORK, split)

    def test_a_model_that_a_site_keeps_for_itself_is_predicted_with_too(
        self, model, split, tmp_path
    ):

        manifest = {"site": "nih", "round": 3}
        save(Checkpoint(checkpoint(model).variables, manifest), tmp_path / "site_best.npz")
        own = predict(load(tmp_path / "site_best.npz"), NETWORK, split).probabilities
        pd.testing.assert_frame_equal(own, predict(checkpoint(model), NETWORK, split).probabilities)
