import keras
import numpy as np
import pytest
import tensorflow as tf

from surgical_aggregation.local_model import LocalModel
from surgical_aggregation.loss import labelled_bce
from surgical_aggregation.site import SiteError
from tiny_site import FEATURES, tiny_model

pytestmark = pytest.mark.keras

CLASSES = ("Edema", "Nodule/Mass")
BATCH_NORM = ("bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance")


def local_model(freeze_batch_norm=True, classes=CLASSES):
    keras.utils.set_random_seed(0)
    return LocalModel(
        tiny_model(len(classes)), classes, learning_rate=0.05, freeze_batch_norm=freeze_batch_norm
    )


def body(model):
    return {name: v for name, v in model.variables().items() if not name.startswith("head/")}


@pytest.fixture(scope="module")
def data():
    """128 images whose first feature is the first class and whose second is the second's."""
    images = np.random.default_rng(0).normal(size=(128, 3)).astype(np.float32)
    labels = (images[:, :2] > 0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(16)


def never():
    return False


class TestTrain:
    def test_learns(self, data):
        model = local_model()
        before = model.evaluate(data, CLASSES)
        model.train(data, epochs=5, stop=never)
        assert model.evaluate(data, CLASSES)["bce"] < 0.8 * before["bce"]

    def test_frozen_batch_norm_keeps_every_bit(self, data):
        model = local_model(freeze_batch_norm=True)
        given = {**body(model), "bn/moving_mean": np.float32([1, 2, 3, 4])}
        model.set_body(given)
        model.train(data, epochs=2, stop=never)
        after = model.variables()
        for name in BATCH_NORM:
            assert after[name].tobytes() == given[name].tobytes()
        assert not np.array_equal(after["dense/kernel"], given["dense/kernel"])

    def test_batch_norm_inside_a_nested_backbone_is_frozen_too(self, data):
        backbone = keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(FEATURES), keras.layers.BatchNormalization()],
            name="backbone",
        )
        inputs = keras.Input((3,))
        head = keras.layers.Dense(2, activation="sigmoid", name="head")
        model = LocalModel(
            keras.Model(inputs, head(backbone(inputs))),
            CLASSES,
            learning_rate=0.05,
            freeze_batch_norm=True,
        )
        before = body(model)
        model.train(data, epochs=1, stop=never)
        same = {name for name, v in body(model).items() if v.tobytes() == before[name].tobytes()}
        assert {name.rpartition("/")[2] for name in same} == {
            "gamma", "beta", "moving_mean", "moving_variance",
        }  # fmt: skip

    def test_batch_norm_that_is_not_frozen_trains(self, data):
        model = local_model(freeze_batch_norm=False)
        before = model.variables()
        model.train(data, epochs=1, stop=never)
        for name in BATCH_NORM:
            assert not np.array_equal(model.variables()[name], before[name])

    def test_stops_after_the_running_batch(self, data):
        model = local_model()
        asked = []

        def at_the_second():
            asked.append(1)
            return len(asked) == 2

        assert model.train(data, epochs=3, stop=at_the_second) is None
        assert len(asked) == 2

    def test_nothing_is_traced_again_in_later_rounds(self, data):
        model = local_model()
        model.train(data, epochs=1, stop=never)
        model.evaluate(data, CLASSES)
        step = model.model.train_function
        model.set_body(body(model))
        model.train(data, epochs=1, stop=never)
        assert model.model.train_function is step

    def test_optimizer_keeps_its_state_between_rounds(self, data):
        model = local_model()
        model.train(data, epochs=1, stop=never)
        model.train(data, epochs=1, stop=never)
        assert int(model.model.optimizer.iterations) == 16


class TestWarmUp:
    def test_trains_the_columns_asked_for_and_nothing_else(self, data):
        model = local_model()
        before = model.variables()
        model.warm_up(("Nodule/Mass",), data, epochs=5, learning_rate=0.05)
        after = model.variables()
        for name in body(model):
            assert after[name].tobytes() == before[name].tobytes()
        assert after["head/kernel"][:, 0].tobytes() == before["head/kernel"][:, 0].tobytes()
        assert not np.array_equal(after["head/kernel"][:, 1], before["head/kernel"][:, 1])

    def test_lowers_the_loss_of_its_class(self, data):
        model = local_model()
        before = model.evaluate(data, CLASSES)["bce/Nodule/Mass"]
        model.warm_up(("Nodule/Mass",), data, epochs=10, learning_rate=0.05)
        assert model.evaluate(data, CLASSES)["bce/Nodule/Mass"] < before


class TestSetColumns:
    def test_puts_columns_where_the_class_stands_and_leaves_the_others(self):
        model = local_model()
        before = model.variables()
        model.set_columns({"Nodule/Mass": (np.full(FEATURES, 7, np.float32), np.float32([8]))})
        after = model.variables()
        np.testing.assert_array_equal(after["head/kernel"][:, 1], 7)
        assert after["head/bias"][1] == 8
        np.testing.assert_array_equal(after["head/kernel"][:, 0], before["head/kernel"][:, 0])

    def test_refuses_a_foreign_class(self):
        with pytest.raises(SiteError, match="'Hernia'"):
            local_model().set_columns({"Hernia": (np.zeros(FEATURES), np.zeros(1))})

    def test_refuses_another_number_of_features(self):
        with pytest.raises(SiteError, match=r"\(9,\) features.*\(4,\).*same backbone"):
            local_model().set_columns({"Edema": (np.zeros(9), np.zeros(1))})


class TestSetBody:
    def test_names_the_variables_that_differ(self):
        model = local_model()
        with pytest.raises(SiteError, match="bn/gamma"):
            model.set_body({name: v for name, v in body(model).items() if name != "bn/gamma"})

    def test_refuses_another_shape(self):
        model = local_model()
        with pytest.raises(SiteError, match="dense/kernel"):
            model.set_body({**body(model), "dense/kernel": np.zeros((5, 4), np.float32)})


class TestDropout:
    def test_its_random_state_is_no_part_of_the_model(self):
        def with_dropout():
            inputs = keras.Input((3,))
            x = keras.layers.Dropout(0.3)(keras.layers.Dense(FEATURES, name="dense")(inputs))
            return keras.Model(inputs, keras.layers.Dense(2, activation="sigmoid", name="head")(x))

        first, second = (
            LocalModel(with_dropout(), CLASSES, learning_rate=0.1, freeze_batch_norm=True)
            for _ in range(2)
        )
        second.set_body(body(first))
        assert set(body(first)) == {"dense/kernel", "dense/bias"}


class TestHead:
    def test_needs_a_unit_per_class(self):
        with pytest.raises(SiteError, match="each of 3 classes; it has 2"):
            LocalModel(tiny_model(2), ("A", "B", "C"), learning_rate=1, freeze_batch_norm=True)

    def test_needs_to_be_called_head(self):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="predictions")])
        with pytest.raises(SiteError, match="called 'head'; got Dense called 'predictions'"):
            LocalModel(model, ("A",), learning_rate=1, freeze_batch_norm=True)


class TestLoss:
    labels = np.float32([[1, 0, 1], [0, 0, 1]])
    probabilities = np.float32([[0.9, 0.2, 0.6], [0.5, 0.1, 0.7]])

    def test_without_gaps_it_is_kerass_binary_cross_entropy(self):
        np.testing.assert_allclose(
            labelled_bce(self.labels, self.probabilities),
            keras.losses.binary_crossentropy(self.labels, self.probabilities),
            rtol=1e-6,
        )

    def test_an_entry_that_is_not_labelled_has_neither_loss_nor_gradient(self):
        labels = np.float32([[1, np.nan, 1]])
        probabilities = tf.constant([[0.9, 0.2, 0.6]])
        with tf.GradientTape() as tape:
            tape.watch(probabilities)
            loss = labelled_bce(labels, probabilities)
        np.testing.assert_allclose(loss, [-np.log([0.9, 0.6]).mean()], rtol=1e-6)
        gradient = tape.gradient(loss, probabilities).numpy()[0]
        assert gradient[1] == 0
        assert np.isfinite(gradient).all()

    def test_an_image_without_a_label_has_no_loss(self):
        assert labelled_bce(np.float32([[np.nan]]), np.float32([[0.5]])).numpy() == [0]
