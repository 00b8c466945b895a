import keras
import numpy as np
import pytest

from surgical_aggregation.aggregation.metrics import bce
from surgical_aggregation.site.training.column_refit import FeatureSplit
from surgical_aggregation.site.training.column_warm_up import warmed_up
from surgical_aggregation.site.training.training_options import TrainingOptions

FEATURES = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
SPLIT = FeatureSplit(FEATURES, (FEATURES[:, :2] > 0).astype(np.float32))
START = np.ones((4, 2), np.float32), np.array([3, -3], np.float32)


class Batches(keras.callbacks.Callback):
    made = 0

    def on_train_batch_end(self, batch, logs=None):
        self.made += 1


def loss(kernel, bias):
    return bce(SPLIT.labels, 1 / (1 + np.exp(-(FEATURES @ kernel + bias)))).mean()


@pytest.mark.parametrize(("epochs", "rate", "least"), [(0, 0.05, 0.0), (3, 0.05, 0.3), (3, 0, 0)])
def test_columns_learn_from_where_they_start_in_passes_of_64_images(epochs, rate, least):
    keras.utils.set_random_seed(0)
    seen = Batches()
    options = TrainingOptions(warmup_epochs=epochs, warmup_learning_rate=rate)
    kernel, bias = warmed_up(SPLIT, *START, None, options, seen)
    assert seen.made == 4 * epochs
    assert loss(*START) - loss(kernel, bias) >= least
    unchanged = (kernel == START[0]).all() and (bias == START[1]).all()
    assert unchanged == (least == 0)
    assert np.abs(kernel - START[0]).max() < 1  # not from new random values
