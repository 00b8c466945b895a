import keras
import numpy as np
import tensorflow as tf

from surgical_aggregation.site.training.loss import balanced_weights, training_loss


class TestLabelledBce:
    labels = np.float32([[1, 0, 1], [0, 0, 1]])
    probabilities = np.float32([[0.9, 0.2, 0.6], [0.5, 0.1, 0.7]])

    def test_without_gaps_it_is_kerass_binary_cross_entropy(self):
        np.testing.assert_allclose(
            training_loss(None, 0.0)(self.labels, self.probabilities),
            keras.losses.binary_crossentropy(self.labels, self.probabilities),
            rtol=1e-6,
        )

    def test_an_entry_that_is_not_labelled_has_neither_loss_nor_gradient(self):
        labels = np.float32([[1, np.nan, 1]])
        probabilities = tf.constant([[0.9, 0.2, 0.6]])
        with tf.GradientTape() as tape:
            tape.watch(probabilities)
            loss = training_loss(None, 0.0)(labels, probabilities)
        np.testing.assert_allclose(loss, [-np.log([0.9, 0.6]).mean()], rtol=1e-6)
        gradient = tape.gradient(loss, probabilities).numpy()[0]
        assert gradient[1] == 0
        assert np.isfinite(gradient).all()

    def test_an_image_without_a_label_has_no_loss(self):
        assert training_loss(None, 0.0)(np.float32([[np.nan]]), np.float32([[0.5]])).numpy() == [0]


class TestWeights:
    def test_each_entry_counts_as_its_label_says_a_smoothed_one_in_between(self):
        labels, half = np.float32([[1, 0]]), np.float32([[0.5, 0.5]])
        weights = np.float32([[1, 3], [5, 1]])  # of a negative, of a positive
        loss = training_loss(weights, 0.0)(labels, half)
        np.testing.assert_allclose(loss, [np.log(2) * (5 + 3) / 2], rtol=1e-5)
        loss = training_loss(np.float32([[1], [3]]), 0.0)(np.float32([[0.5]]), np.float32([[0.5]]))
        np.testing.assert_allclose(loss, [np.log(2) * 2], rtol=1e-5)

    def test_balanced_ones_give_both_kinds_the_same_total_if_there_are_both(self):
        labels = np.array([[1], [0], [0], [0], [np.nan]])
        np.testing.assert_allclose(balanced_weights(labels), [[4 / 6], [2]], rtol=1e-6)
        np.testing.assert_array_equal(balanced_weights(np.zeros((3, 1))), [[1], [1]])


class TestFocal:
    def test_an_entry_counts_by_its_error_to_the_power_of_gamma(self):
        labels, probabilities = np.float32([[1, 0]]), np.float32([[0.8, 0.8]])
        loss = training_loss(None, 2.0)(labels, probabilities)
        expected = (-np.log(0.8) * 0.2**2 - np.log(0.2) * 0.8**2) / 2
        np.testing.assert_allclose(loss, [expected], rtol=1e-5)
