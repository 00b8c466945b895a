import keras
import numpy as np
import pytest
import tensorflow as tf

from rounding import last_places
from surgical_aggregation.site.contract import architecture
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.training.column_refit import FeatureSplit, best_refit
from surgical_aggregation.site.training.fused_kernels import FusedBatchNormalization
from surgical_aggregation.site.training.local_model import LocalModel
from surgical_aggregation.site.training.task_abort import Stopped, never
from surgical_aggregation.site.training.training_options import TrainingOptions
from tiny_site import FEATURES, tiny_model

CLASSES = ("Edema", "Nodule/Mass")


def local_model(loss_weights=None, **options):
    keras.utils.set_random_seed(0)
    given = {"learning_rate": 0.05, "warmup_learning_rate": 0.05, "warmup_epochs": 5, **options}
    return LocalModel(tiny_model(2), CLASSES, TrainingOptions(**given), loss_weights=loss_weights)


def body(model):
    return {name: v for name, v in model.variables().items() if not name.startswith("head/")}


@pytest.fixture(scope="module")
def data():
    """128 images whose first feature is the first class and whose second is the second's."""
    images = np.random.default_rng(0).normal(size=(128, 3)).astype(np.float32)
    labels = (images[:, :2] > 0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(16)


class StopAt:
    """Returns True at the nth call."""

    def __init__(self, number):
        self.asked, self.number = 0, number

    def __call__(self):
        self.asked += 1
        return self.asked == self.number


def distance(one, other):
    return sum(np.sum((one[name] - other[name]) ** 2) for name in one)


def changed(before, after):
    return {name for name in before if before[name].tobytes() != after[name].tobytes()}


class TestRefit:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_replaces_the_columns_alone_by_those_of_the_best_penalty(self, data, weighted):
        weights = np.float32([[0.5, 1], [2, 1]]) if weighted else None
        model, parts = local_model(weights), (data.take(5), data.skip(5))
        splits = [FeatureSplit(of.features, of.labels) for of in map(model.predict, parts)]
        before, given = model.evaluate(parts[1], CLASSES)["bce"], model.variables()
        expected = best_refit(*splits, given["head/kernel"], given["head/bias"], weights)
        assert model.refit(*parts) == expected.penalty is not None
        after = model.variables()
        np.testing.assert_allclose(after["head/kernel"], expected.kernel, rtol=1e-5)
        np.testing.assert_allclose(after["head/bias"], expected.bias, rtol=1e-5)
        assert changed(given, after) == {"head/kernel", "head/bias"}
        assert model.evaluate(parts[1], CLASSES)["bce"] < before

    def test_stops_after_the_running_batch(self, data):
        model = local_model()
        head = model.variables()["head/kernel"]
        with pytest.raises(Stopped):
            model.refit(data, data, StopAt(10))  # of 8 and 8
        np.testing.assert_array_equal(model.variables()["head/kernel"], head)


class TestTrain:
    def test_learns_and_traces_nothing_again_in_later_rounds(self, data):
        model = local_model(epochs=5)
        before = model.evaluate(data, CLASSES)
        model.train(data, stop=never)
        assert model.evaluate(data, CLASSES)["bce"] < 0.8 * before["bce"]
        step = model.model.train_function
        model.set_body(body(model))
        model.train(data, stop=never)
        assert model.model.train_function is step

    @pytest.mark.parametrize(("frozen", "stays"), [(False, "bn/moving_"), (True, "bn/")])
    def test_frozen_statistics_stay_and_a_frozen_layers_scale_and_shift(self, data, frozen, stays):
        network = tiny_model(2)
        (layer,) = architecture.batch_norm_layers(network)
        layer.trainable = not frozen
        model = LocalModel(network, CLASSES, TrainingOptions(strategy="fixbn"))
        before = model.variables()
        model.train(data)
        learns = {name for name in before if not name.startswith(stays)}
        assert changed(before, model.variables()) == learns

    def test_training_normalises_by_frozen_statistics_not_by_the_batch(self, data):
        """As a network without batch normalisation that scales by them would train."""
        models = [local_model(strategy=strategy) for strategy in ("fixbn", "fedbn+", "fedavg")]
        for each in models:
            each.assign({"bn/moving_mean": np.float32([1, 2, 3, 4])})
        losses = [each.train(data.take(1)) for each in models]
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)
        assert losses[2] != pytest.approx(losses[1], rel=1e-3)

    def test_stops_after_the_running_batch_as_evaluation_does(self, data):
        model = local_model(epochs=3)
        for work in (model.train, lambda data, stop: model.evaluate(data, CLASSES, stop=stop)):
            stop = StopAt(2)
            with pytest.raises(Stopped):
                work(data, stop)
            assert stop.asked == 2
        assert np.isfinite(model.train(data, never))  # another round can follow

    def test_batch_normalisation_is_kerass_own_until_it_trains(self, data):
        model = local_model(strategy="fedavg")
        model.evaluate(data, CLASSES)
        model.warm_up(CLASSES, data)
        assert type(model.model.get_layer("bn")) is keras.layers.BatchNormalization
        model.train(data)
        assert type(model.model.get_layer("bn")) is FusedBatchNormalization


class TestPredict:
    def test_is_keras_prediction_in_the_order_of_the_images_each_made_once(self, data):
        made = []

        def batches():
            for images, labels in data:
                made.append(len(labels))
                yield images, labels

        counted = tf.data.Dataset.from_generator(batches, output_signature=data.element_spec)
        model = local_model()
        features, probabilities, labels = model.predict(counted)
        assert sum(made) == 128
        kerass = model.model.predict(data, verbose=0)  # by another graph
        np.testing.assert_array_max_ulp(probabilities, kerass, last_places(model.model))
        assert features.shape == (128, FEATURES)
        np.testing.assert_array_equal(labels, np.concatenate([batch for _, batch in data]))

    def test_is_traced_once_whatever_the_split_and_its_last_batch(self, data):
        model = local_model()
        model.warm_up(CLASSES, data.unbatch().batch(30))
        for images in (128, 17, 3):
            model.evaluate(data.unbatch().take(images).batch(16), CLASSES)
        assert model._forward.experimental_get_tracing_count() == 1


class TestWarmUp:
    @pytest.mark.parametrize("asked", [2, 10], ids=["of the features", "of the columns"])
    def test_stops_after_the_running_batch_and_leaves_the_columns(self, data, asked):
        model, stop = local_model(), StopAt(asked)
        before = model.variables()
        with pytest.raises(Stopped):
            model.warm_up(("Nodule/Mass",), data, stop)
        assert stop.asked == asked
        assert not changed(before, model.variables())

    def test_trains_the_columns_asked_for_alone_with_the_weights_of_their_class(self, data):
        means = []
        for weights in (None, np.float32([[20, 1], [1, 20]])):  # positives of the second count most
            model = local_model(weights)
            before = model.variables()
            model.warm_up(("Nodule/Mass",), data)
            after = model.variables()
            assert changed(before, after) == {"head/kernel", "head/bias"}
            moved = (before["head/kernel"] != after["head/kernel"]).any(axis=0)
            assert moved.tolist() == [False, True]
            means.append(model.model.predict(data, verbose=0).mean(axis=0)[1])
        assert means[1] > means[0] + 0.1


def test_a_batch_may_be_empty(data):
    model, (images, _) = local_model(), next(iter(data))
    forward, given = model._forward, []
    model._forward = lambda images: given.append(len(images)) or forward(images)
    some, none = model.outputs(images), model.outputs(images[:0])
    assert [value.shape for value in none] == [(0, value.shape[1]) for value in some]
    assert given == [16, 1]  # some processors' kernels refuse an empty batch


def test_columns_are_set_where_their_class_stands_and_others_or_other_shapes_are_refused():
    model = local_model()
    before = model.variables()
    model.set_columns({"Nodule/Mass": (np.full(FEATURES, 7, np.float32), np.float32([8]))})
    after = model.variables()
    assert after["head/bias"][1] == 8 and (after["head/kernel"][:, 1] == 7).all()
    np.testing.assert_array_equal(after["head/kernel"][:, 0], before["head/kernel"][:, 0])
    with pytest.raises(SiteError, match="'Hernia'"):
        model.set_columns({"Hernia": (np.zeros(FEATURES), np.zeros(1))})
    with pytest.raises(SiteError, match=r"shape \(9,\);.*\(4,\).*same backbone"):
        model.set_columns({"Edema": (np.zeros(9), np.zeros(1))})
    with pytest.raises(SiteError, match="bn/gamma"):
        model.set_body({name: v for name, v in body(model).items() if name != "bn/gamma"})


class TestOptions:
    def test_gradient_clip_tames_a_batch_unlike_the_others(self, data):
        images, labels = next(data.as_numpy_iterator())
        huge = tf.data.Dataset.from_tensor_slices(([images, 1e4 * images], [labels, labels]))
        moved = []
        for clip in (0.0, 0.1):
            model = local_model(gradient_clip=clip)
            before = model.variables()
            model.train(huge, stop=never)
            assert int(model.model.optimizer.iterations) == 2
            moved.append(distance(before, model.variables()))
        assert moved[0] != moved[1]  # Adam's steps follow ratios of gradients

    def test_fedprox_keeps_the_model_near_what_was_received_in_the_round(self, data):
        moved = []
        for proximal in (0.0, 10.0):
            model = local_model(proximal=proximal, epochs=3)
            far = {name: value + 5 for name, value in body(model).items()}
            model.set_body(far)  # not near the first model
            model.train(data, stop=never)
            moved.append(distance(far, body(model)))
        assert 0 < moved[1] < 0.5 * moved[0]


class TestTrainingState:
    @pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
    def test_another_process_trains_on_bit_for_bit(self, data, policy):
        """In float16, too, whose optimizer scales the loss."""
        keras.config.set_dtype_policy(policy)
        try:
            straight, continued = local_model(), local_model()
            assert straight.training_state().keys() == continued.training_state().keys()
            straight.train(data)
            continued.assign(straight.variables())
            continued.set_training_state(straight.training_state())
            for model in (straight, continued):
                model.train(data)
            assert not changed(straight.variables(), continued.variables())
        finally:
            keras.config.set_dtype_policy("float32")

    def test_of_another_rate_it_keeps_its_own_and_of_another_model_it_is_refused(self):
        other = local_model(learning_rate=0.5)
        other.set_training_state(local_model(learning_rate=0.1).training_state())
        assert float(other.model.optimizer.learning_rate) == pytest.approx(0.5)
        state = LocalModel(tiny_model(1), ("Edema",)).training_state()
        with pytest.raises(SiteError, match="another model, or of other classes"):
            other.set_training_state(state)

    def test_has_the_random_state_of_dropout_which_is_no_part_of_the_model(self, data):
        inputs = keras.Input((3,))
        x = keras.layers.Dropout(0.3, seed=1)(keras.layers.Dense(FEATURES, name="dense")(inputs))
        model = keras.Model(inputs, keras.layers.Dense(2, activation="sigmoid", name="head")(x))
        local = LocalModel(model, CLASSES)
        local.set_body(body(local))
        assert body(local).keys() == {"dense/kernel", "dense/bias"}
        before = local.training_state()["random/0"]
        local.train(data, stop=never)
        assert not np.array_equal(before, local.training_state()["random/0"])
