import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_study.evaluation.test_scores import Network
from cxr_study.evaluation.test_set import TestSet
from cxr_study.studies.runner import predictions
from cxr_study.studies.runner.predictions import (
    FEATURES_OF,
    Predicted,
    PredictionError,
    featured_rows,
    predict,
    read,
    read_features,
    write,
)
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.wire import variables as wire

NETWORK = Network("small_densenet", 32, hidden=0)
CLASSES = ("Edema", "Hernia", "Mass")


def predicted(seed, classes=CLASSES, images=7):
    rng = np.random.default_rng(seed)
    probabilities = rng.random((images, len(classes)), np.float32)
    return Predicted(
        pd.DataFrame(probabilities, columns=list(classes)), rng.random((5, 4), np.float32)
    )


class TestKept:
    def test_every_model_is_read_on_every_test_set_as_it_was_written(self, tmp_path):
        written = {
            ("nih-1", "nih"): predicted(0),
            ("nih-2", "nih"): predicted(1, CLASSES[:2]),
            ("nih-1", "mimic"): predicted(2, images=3),
        }
        write(written, tmp_path)
        for (model, test), value in written.items():
            for found, expected in (
                (read(tmp_path, model, test), value.probabilities.to_numpy()),
                (read_features(tmp_path, model, test), value.features),
            ):
                assert found.dtype == np.float32
                np.testing.assert_array_equal(found, expected)

    def test_they_are_compressed(self, tmp_path):
        alike = pd.DataFrame(np.full((10_000, 3), 0.25, np.float32), columns=list(CLASSES))
        write({("global", "nih"): Predicted(alike, alike.to_numpy())}, tmp_path)
        for file in (predictions.PREDICTIONS_FILE, predictions.FEATURES_FILE):
            assert (tmp_path / file).stat().st_size < 10_000


class TestFeaturedRows:
    @given(st.integers(1, 2 * FEATURES_OF) | st.integers(1, 300_000))
    def test_they_are_spread_evenly_from_the_first_image_to_the_last(self, images):
        rows = featured_rows(images)
        assert rows.dtype == np.int64
        assert len(rows) == min(images, FEATURES_OF)
        assert (rows[0], rows[-1]) == (0, images - 1)
        gaps = np.diff(rows)
        assert len(gaps) == 0 or 1 <= gaps.min() <= gaps.max() <= gaps.min() + 1

    def test_of_few_images_they_are_all(self):
        assert featured_rows(3).tolist() == [0, 1, 2]


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
def test_set():
    """Three of five images, in an order of their own."""
    pixels = np.random.default_rng(1).integers(0, 256, (5, 32, 32)).astype(np.uint8)
    return TestSet(pd.DataFrame({"image": ["d", "a", "c"]}), pixels, np.array([3, 0, 2]))


def checkpoint(model):
    from surgical_aggregation.site.contract.architecture import initial_body

    kernel, bias = model.get_layer("head").get_weights()
    columns = {name: (kernel[:, k], bias[k : k + 1]) for k, name in enumerate(CLASSES)}
    return Checkpoint(wire.join(initial_body(model).variables, columns))


class TestPredict:
    def test_probabilities_are_the_networks_on_the_images_of_the_table(self, model, test_set):
        from cxr_study.training.input_pipeline import dataset

        found = predict(checkpoint(model), NETWORK, test_set).probabilities
        pixels = test_set.pixels[[3, 0, 2]]
        expected = model.predict(dataset(pixels, np.zeros((3, 3)), batch_size=3), verbose=0)
        assert list(found) == list(CLASSES)
        assert set(found.dtypes) == {np.dtype(np.float32)}
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert np.ptp(expected, axis=0).min() > 1e-4  # in another order they would differ

    def test_the_head_makes_the_probabilities_of_the_features(self, model, test_set, monkeypatch):
        monkeypatch.setattr(predictions, "FEATURES_OF", 2)
        found = predict(checkpoint(model), NETWORK, test_set)
        kernel, bias = model.get_layer("head").get_weights()
        assert found.features.dtype == np.float32
        expected = 1 / (1 + np.exp(-(found.features @ kernel + bias)))
        np.testing.assert_allclose(found.probabilities.iloc[[0, 2]], expected, rtol=1e-5)

    def test_every_image_is_read_once(self, model, test_set, monkeypatch):
        from cxr_study.training import input_pipeline

        whole, made = input_pipeline.dataset, []

        def counted(*args, **options):
            made.append(options["rows"].tolist())
            return whole(*args, **options)

        monkeypatch.setattr(input_pipeline, "dataset", counted)
        predict(checkpoint(model), NETWORK, test_set)
        assert made == [[3, 0, 2]]

    def test_a_model_that_predicts_nan_is_refused(self, model, test_set):
        broken = checkpoint(model)
        broken.variables["head/Mass/bias"][:] = np.nan
        with pytest.raises(PredictionError, match=r"predicts NaN.*learning rate too high"):
            predict(broken, NETWORK, test_set)
