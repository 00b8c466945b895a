import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from cxr_studies.runner import prediction_files
from cxr_studies.runner.prediction_files import (
    FEATURES_OF,
    featured_rows,
    read,
    read_features,
    thinned,
    write,
)
from cxr_study.evaluation.predictions import Predictions

CLASSES = ("Edema", "Hernia", "Mass")


def predicted(seed, classes=CLASSES, images=7):
    rng = np.random.default_rng(seed)
    probabilities = rng.random((images, len(classes)), np.float32)
    return Predictions(
        None, pd.DataFrame(probabilities, columns=list(classes)), rng.random((5, 4), np.float32)
    )


def test_every_model_is_read_on_every_test_set_as_it_was_written_and_files_are_small(tmp_path):
    alike = pd.DataFrame(np.full((10_000, 3), 0.25, np.float32), columns=list(CLASSES))
    written = {
        ("nih-1", "nih"): predicted(0),
        ("nih-2", "nih"): predicted(1, CLASSES[:2]),
        ("nih-1", "mimic"): predicted(2, images=3),
        ("nih-2", "mimic"): Predictions(None, alike, alike.to_numpy()),
    }
    write(written, tmp_path)
    for (model, test), value in written.items():
        for found, expected in (
            (read(tmp_path, model, test), value.probabilities.to_numpy()),
            (read_features(tmp_path, model, test), value.features),
        ):
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, expected)
    for file in (prediction_files.PREDICTIONS_FILE, prediction_files.FEATURES_FILE):
        assert (tmp_path / file).stat().st_size < 10_000


@given(st.integers(1, 2 * FEATURES_OF) | st.integers(1, 300_000))
def test_rows_of_features_are_spread_evenly_from_the_first_image_to_the_last(images):
    rows = featured_rows(images)
    assert rows.dtype == np.int64
    assert len(rows) == min(images, FEATURES_OF)
    assert (rows[0], rows[-1]) == (0, images - 1)
    gaps = np.diff(rows)
    assert len(gaps) == 0 or 1 <= gaps.min() <= gaps.max() <= gaps.min() + 1


def test_features_of_the_other_images_are_left_out(monkeypatch):
    monkeypatch.setattr(prediction_files, "FEATURES_OF", 2)
    features = np.arange(3, dtype=np.float32)[:, None]
    found = thinned(Predictions(None, predicted(0, images=3).probabilities, features))
    assert found.features.tolist() == [[0], [2]] and len(found.probabilities) == 3
