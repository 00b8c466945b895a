"""What a received model teaches the one in training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from surgical_aggregation.site.training.keras_model import LocalModel
from surgical_aggregation.site.training.teacher import Teacher, Terms, targets_of
from surgical_aggregation.site.training.training_options import TrainingOptions
from tiny_site import FEATURES, tiny_model

CLASSES = ("Edema", "Nodule/Mass", "Fracture")
MISSING = (False, False, True)
NAN = np.nan


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


def far(model):
    """Move the features, so that the next received model is another."""
    moved = {name: v + 0.3 for name, v in model.variables().items() if "kernel" in name}
    model.assign(moved)


class TestTeacher:
    def test_it_keeps_what_it_learned_while_the_network_moves_on(self, batch):
        network = tiny_model(3)
        teacher = Teacher(keras.Model(network.input, [network.layers[-1].input, network.output]))
        before = [value.numpy() for value in teacher(batch[0], training=False)]
        for variable in network.variables:
            variable.assign(variable + 1)
        for value, kept in zip(teacher(batch[0], training=False), before, strict=True):
            np.testing.assert_array_equal(value, kept)
        teacher.learn()
        features, probabilities = teacher(batch[0], training=False)
        assert not np.allclose(features, before[0])
        np.testing.assert_allclose(probabilities, network(batch[0], training=False), rtol=1e-6)

    def test_as_in_training_it_takes_the_statistics_of_the_batch_and_changes_none(self, batch):
        network = tiny_model(3)
        teacher = Teacher(keras.Model(network.input, [network.layers[-1].input, network.output]))
        features, _ = teacher(batch[0], training=True)
        np.testing.assert_allclose(np.mean(features, axis=0), 0, atol=1e-5)
        np.testing.assert_array_equal(network.get_layer("bn").moving_mean, np.zeros(FEATURES))

    def test_in_training_it_drops_what_the_network_drops_in_every_batch(self, batch):
        inputs = keras.Input((3,))
        features = keras.layers.Dropout(0.5, seed=1)(keras.layers.Dense(FEATURES)(inputs))
        network = keras.Model(inputs, [features, keras.layers.Dense(3, name="head")(features)])
        teacher, dropped = Teacher(network), set()
        for _ in range(3):
            taught, _ = teacher(batch[0], training=True)
            teacher(batch[0], training=False)  # which drops nothing
            np.testing.assert_array_equal(taught, network(batch[0], training=True)[0])
            dropped.add((taught.numpy() == 0).tobytes())
        assert len(dropped) == 3


class TestConsistency:
    @pytest.mark.parametrize("strategy", ["fedavg", "fedbn", "fedbn+"])
    def test_the_distance_begins_at_nothing(self, data, strategy):
        plain, held = (local_model(strategy=strategy, consistency=c) for c in (0.0, 1e6))
        assert first_loss(held, data) == pytest.approx(first_loss(plain, data), rel=1e-4)

    def test_the_term_is_lambda_times_the_mean_squared_distance_of_features(self, batch, data):
        """In a second step; the first is the same without it, for at 0 it has no gradient."""
        once, twice, held = (
            local_model(strategy="fedbn+", learning_rate=0.02, epochs=epochs, consistency=weight)
            for epochs, weight in ((1, 0.0), (2, 0.0), (2, 3.0))
        )
        received = once.outputs(batch[0])[0]
        once.train(data)
        expected = 3.0 * np.mean((once.outputs(batch[0])[0] - received) ** 2)
        assert held.train(data) - twice.train(data) == pytest.approx(expected, rel=1e-3)
        assert expected > 1e-4

    def test_it_holds_the_features_near_the_received_ones(self, batch, data):
        distances = []
        for weight in (0.0, 10.0):
            model = local_model(consistency=weight, strategy="fedbn+", epochs=20)
            far(model)  # what is received now, not what the model was made with
            received = model.outputs(batch[0])[0]
            model.train(data)
            distances.append(np.mean((model.outputs(batch[0])[0] - received) ** 2))
        assert distances[1] < 0.2 * distances[0]


class TestPseudoLabels:
    def test_confident_targets_are_those_beyond_the_thresholds(self):
        taught = tf.constant([[0.9, 0.5, 0.9], [0.9, 0.5, 0.5], [0.9, 0.5, 0.001]])
        targets, counted = targets_of(taught, Terms(0.0, "confident", MISSING))
        np.testing.assert_array_equal(counted, [[0, 0, 1], [0, 0, 0], [0, 0, 1]])
        np.testing.assert_array_equal(np.array(targets)[:, 2], [1, 0, 0])
        targets, counted = targets_of(taught, Terms(0.0, "soft", MISSING))
        assert targets is taught
        np.testing.assert_array_equal(counted, [[0, 0, 1]] * 3)

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
        terms = Terms(0.0, "soft", (False,) * 3)
        assert not terms.any and Terms(0.0, "soft", MISSING).any and Terms(1.0, "none", ()).any
        assert local_model((False,) * 3, pseudo_labels="soft")._teacher is None


def test_the_training_state_is_that_of_the_model_without_a_teacher():
    plain, taught = (local_model(consistency=c) for c in (0.0, 1.0))
    one, other = plain.training_state(), taught.training_state()
    assert [v.shape for v in one.values()] == [v.shape for v in other.values()]
    assert plain.variables().keys() == taught.variables().keys()
