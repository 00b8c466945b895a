"""What a received model teaches the one in training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from surgical_aggregation.site.training.keras_model import LocalModel
from surgical_aggregation.site.training.teacher import Teacher
from surgical_aggregation.site.training.training_options import TrainingOptions
from tiny_site import tiny_model

CLASSES = ("Edema", "Nodule/Mass", "Fracture")
MISSING = (False, False, True)


def local_model(missing=MISSING, **options):
    keras.utils.set_random_seed(0)
    given = {"learning_rate": 0.05, "strategy": "fedavg", **options}
    return LocalModel(tiny_model(3), CLASSES, TrainingOptions(**given), missing=missing)


@pytest.fixture(scope="module")
def batch():
    """One batch; of the third class nothing is known."""
    images = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    labels = (images > 0).astype(np.float32)
    labels[:, 2] = np.nan
    return images, labels


@pytest.fixture
def data(batch):
    return tf.data.Dataset.from_tensor_slices(batch).batch(64)


def first_loss(model, data, **how):
    """Of the first batch, before any step."""
    return model.train(data.take(1), **how)


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
        _, probabilities = plain.outputs(batch[0])
        p = probabilities[:, 2]
        entropy = -np.mean(p * np.log(p) + (1 - p) * np.log(1 - p))
        expected = first_loss(plain, data) + entropy / 2  # two classes have labels
        found = first_loss(taught, data, pseudo_labels=True)
        assert found == pytest.approx(expected, rel=1e-4)

    def test_they_count_in_the_rounds_asked_for_alone(self, data):
        plain, taught = (local_model(pseudo_labels=p) for p in ("none", "soft"))
        assert first_loss(taught, data) == pytest.approx(first_loss(plain, data), rel=1e-6)

    def test_a_missing_class_goes_on_as_the_received_model_has_it(self, batch, data):
        """Without them its probabilities drift with the body."""
        drifts = []
        for kind in ("none", "soft"):
            model = local_model(pseudo_labels=kind, epochs=100, strategy="fedbn+")
            before = model.outputs(batch[0])[1][:, 2]
            model.train(data, pseudo_labels=True)
            drifts.append(np.mean(np.abs(model.outputs(batch[0])[1][:, 2] - before)))
        assert drifts[1] < 0.5 * drifts[0]

    def test_a_site_without_a_missing_class_has_no_teacher(self):
        assert local_model((False,) * 3, pseudo_labels="soft")._taught is None


def test_the_training_state_is_that_of_the_model_without_a_teacher():
    plain, taught = (local_model(pseudo_labels=p) for p in ("none", "soft"))
    one, other = plain.training_state(), taught.training_state()
    assert [v.shape for v in one.values()] == [v.shape for v in other.values()]
    assert plain.variables().keys() == taught.variables().keys()
