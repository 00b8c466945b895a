import keras
import numpy as np
import pytest
import tensorflow as tf

from surgical_aggregation.site.training.loss import balanced_weights, training_loss


@pytest.mark.parametrize(("labels", "probabilities", "weights", "focal_gamma", "expected"), [
    ([1, np.nan, 1], [0.9, 0.2, 0.6], None, 0, -np.log([0.9, 0.6]).mean()),
    ([np.nan], [0.5], None, 0, 0),
    # Weights of a negative and of a positive; a smoothed label has one in between.
    ([1, 0], [0.5, 0.5], [[1, 3], [5, 1]], 0, np.log(2) * (5 + 3) / 2),
    ([0.5], [0.5], [[1], [3]], 0, np.log(2) * 2),
    # Each entry counts by its error to the power of gamma.
    ([1, 0], [0.8, 0.8], None, 2, -(np.log(0.8) * 0.2**2 + np.log(0.2) * 0.8**2) / 2),
    # A root of the error has no slope at 0, where a sigmoid saturates.
    ([1, 0, 0], [1, 0, 0.5], None, 0.5, np.log(2) * 0.5**0.5 / 3),
], ids=["not labelled", "no label", "weights", "smoothed", "focal", "a root"])  # fmt: skip
def test_an_images_loss_is_the_mean_over_its_labelled_classes(
    labels, probabilities, weights, focal_gamma, expected
):
    given = tf.constant([probabilities])
    with tf.GradientTape() as tape:
        tape.watch(given)
        loss = training_loss(weights, focal_gamma)(np.float32([labels]), given)
    np.testing.assert_allclose(loss, [expected], rtol=1e-5)
    gradient = tape.gradient(loss, given).numpy()
    assert np.isfinite(gradient).all() and not gradient[:, np.isnan(labels)].any()


def test_without_gaps_it_is_kerass_binary_cross_entropy():
    labels = np.float32([[1, 0, 1], [0, 0, 1]])
    probabilities = np.float32([[0.9, 0.2, 0.6], [0.5, 0.1, 0.7]])
    found = training_loss(None, 0.0)(labels, probabilities)
    expected = keras.losses.binary_crossentropy(labels, probabilities)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_balanced_weights_give_both_kinds_the_same_total_if_there_are_both():
    labels = np.array([[1], [0], [0], [0], [np.nan]])
    np.testing.assert_allclose(balanced_weights(labels), [[4 / 6], [2]], rtol=1e-6)
    np.testing.assert_array_equal(balanced_weights(np.zeros((3, 1))), [[1], [1]])
