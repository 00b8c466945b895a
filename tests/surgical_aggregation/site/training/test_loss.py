"""The training loss against its formula, and what a received model teaches the one in training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from surgical_aggregation.site.training.local_model import LocalModel
from surgical_aggregation.site.training.loss import Teacher, balanced_weights, training_loss
from surgical_aggregation.site.training.training_options import TrainingOptions
from tiny_site import tiny_model


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
def test_it_is_a_mean_over_labelled_classes(labels, probabilities, weights, focal_gamma, expected):
    given = tf.constant([probabilities])
    with tf.GradientTape() as tape:
        tape.watch(given)
        loss = training_loss(weights, focal_gamma)(np.float32([labels]), given)
    np.testing.assert_allclose(loss, [expected], rtol=1e-5)
    gradient = tape.gradient(loss, given).numpy()
    assert np.isfinite(gradient).all() and not gradient[:, np.isnan(labels)].any()


def test_balanced_weights_give_both_kinds_the_same_total_if_there_are_both():
    labels = np.array([[1], [0], [0], [0], [np.nan]])
    np.testing.assert_allclose(balanced_weights(labels), [[4 / 6], [2]], rtol=1e-6)
    np.testing.assert_array_equal(balanced_weights(np.zeros((3, 1))), [[1], [1]])


CLASSES = ("Edema", "Nodule/Mass", "Fracture")
MISSING = (False, False, True)


def local_model(missing=MISSING, **options):
    keras.utils.set_random_seed(0)
    given = {"learning_rate": 0.05, "strategy": "fedavg", **options}
    return LocalModel(tiny_model(3), CLASSES, TrainingOptions(**given), missing=missing)


@pytest.fixture(scope="module")
def batch():
    """One batch, so a training loss is that before any step; the third class has no labels."""
    images = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    labels = (images > 0).astype(np.float32)
    labels[:, 2] = np.nan
    return images, labels


@pytest.fixture
def data(batch):
    return tf.data.Dataset.from_tensor_slices(batch).batch(64)


def test_a_teacher_keeps_what_it_learned_while_the_network_moves_on(batch):
    network = tiny_model(3)
    teacher = Teacher(network)
    before = teacher(batch[0]).numpy()
    for variable in network.variables:
        variable.assign(variable + 1)
    np.testing.assert_array_equal(teacher(batch[0]), before)
    teacher.learn()
    after = teacher(batch[0])
    assert not np.allclose(after, before)
    np.testing.assert_allclose(after, network(batch[0], training=False), rtol=1e-6)


class TestPseudoLabels:
    def test_a_pseudo_label_counts_as_much_as_a_label(self, batch, data):
        plain, taught = (local_model(pseudo_labels=p, strategy="fedbn+") for p in ("none", "soft"))
        p = plain.outputs(batch[0])[1][:, 2]
        entropy = -np.mean(p * np.log(p) + (1 - p) * np.log(1 - p))
        expected = plain.train(data) + entropy / 2  # two classes have labels
        assert taught.train(data, pseudo_labels=True) == pytest.approx(expected, rel=1e-4)

    def test_they_count_in_the_rounds_asked_for_alone(self, data):
        plain, taught = (local_model(pseudo_labels=p) for p in ("none", "soft"))
        assert taught.train(data) == pytest.approx(plain.train(data), rel=1e-6)

    def test_a_site_without_a_missing_class_has_no_teacher(self):
        assert local_model((False,) * 3, pseudo_labels="soft")._taught is None


def test_the_training_state_is_that_of_the_model_without_a_teacher():
    plain, taught = (local_model(pseudo_labels=p) for p in ("none", "soft"))
    one, other = plain.training_state(), taught.training_state()
    assert [v.shape for v in one.values()] == [v.shape for v in other.values()]
    assert plain.variables().keys() == taught.variables().keys()
