import keras
import numpy as np
import pytest

from cxr_study.training.backbones import normalisation
from cxr_study.training.input_pipeline import dataset

MEAN, SD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def flat(n, side=8):
    """Image i is all i, and its label is i."""
    images = np.broadcast_to(np.arange(n, dtype=np.uint8)[:, None, None], (n, side, side))
    return images, np.arange(n, dtype=np.float32)[:, None]


def order(data):
    return np.concatenate([labels.numpy()[:, 0] for _, labels in data]).tolist()


def bits(data):
    return [(pixels.tobytes(), labels.tobytes()) for pixels, labels in data.as_numpy_iterator()]


def pixel_values(pixels):
    return pixels * SD * 255 + MEAN * 255


def test_pixels_are_normalised_as_imagenet_and_batches_have_known_shapes_and_number():
    images = np.array([[[0]], [[255]]], dtype=np.uint8)
    labels = np.array([[1, np.nan], [0, 1]], dtype=np.float32)
    ((pixels, out),) = dataset(images, labels, batch_size=2).as_numpy_iterator()
    assert pixels.dtype == np.float32
    np.testing.assert_allclose(pixels[:, 0, 0], [-MEAN / SD, (1 - MEAN) / SD], rtol=1e-6)
    np.testing.assert_array_equal(out, labels)  # missing labels stay as they are
    data = dataset(*flat(5), batch_size=2)
    assert [spec.shape.as_list() for spec in data.element_spec] == [[None, 8, 8, 3], [None, 1]]
    assert (data.cardinality(), [len(labels) for _, labels in data]) == (3, [2, 2, 1])


@pytest.mark.parametrize("augmentation", ["none", "radiology"])
def test_colours_go_the_way_of_grey_levels_and_those_of_caffe_turned_around(augmentation):
    grey = np.random.default_rng(0).integers(0, 256, (5, 16, 16)).astype(np.uint8)
    settings = {"batch_size": 5, "augmentation": augmentation}
    labels = np.zeros((5, 1), np.float32)
    ((expected, _),) = dataset(grey, labels, **settings).as_numpy_iterator()
    ((found, _),) = dataset(grey[..., None].repeat(3, 3), labels, **settings).as_numpy_iterator()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    red = np.zeros((1, 2, 2, 3), np.uint8)
    red[..., 0] = 200
    caffe = normalisation("resnet50")
    ((found, _),) = dataset(red, labels[:1], batch_size=1, normalisation=caffe).as_numpy_iterator()
    theirs = keras.applications.resnet.preprocess_input(red.astype(np.float32))
    np.testing.assert_allclose(found, theirs, rtol=1e-6)


def test_rows_choose_among_more_images():
    images, labels = flat(9)
    rows = np.array([7, 2, 2, 5])
    settings = {"batch_size": 3, "shuffle_seed": 1, "augmentation": "radiology"}
    chosen = dataset(images, labels[rows], rows=rows, **settings)
    copied = dataset(images[rows], labels[rows], **settings)
    for _ in range(2):
        assert bits(chosen) == bits(copied)
    assert order(dataset(images, labels[rows], rows=rows, batch_size=3)) == [7, 2, 2, 5]
    assert chosen.cardinality() == 2


def test_images_stay_where_they_are_mapped(tmp_path):
    np.full((3, 4, 4), 9, np.uint8).tofile(tmp_path / "pixels")
    images = np.memmap(tmp_path / "pixels", np.uint8, shape=(3, 4, 4))
    data = dataset(images, np.zeros((1, 1)), rows=np.array([1]), batch_size=1)
    images[1] = 200  # a copy would not see this
    ((pixels, _),) = data.as_numpy_iterator()
    np.testing.assert_allclose(pixel_values(pixels), 200, atol=1e-3)


def test_every_pass_has_a_new_order_that_follows_from_the_seed():
    first, second = (dataset(*flat(50), batch_size=8, shuffle_seed=1) for _ in range(2))
    passes = [order(first), order(first)]
    assert passes[0] != passes[1]
    assert all(sorted(one) == list(range(50)) for one in passes)
    assert [order(second), order(second)] == passes
    assert order(dataset(*flat(50), batch_size=8, shuffle_seed=2)) != passes[0]
    for pixels, labels in second:  # labels stay with their images
        value = pixel_values(pixels.numpy())[:, 0, 0, 0]
        np.testing.assert_allclose(value, labels.numpy()[:, 0], atol=1e-3)


def noisy(**settings):
    images = np.random.default_rng(0).integers(256, size=(20, 8, 8)).astype(np.uint8)
    settings = {"shuffle_seed": 1, "augmentation": "radiology", "seed": 2, **settings}
    return dataset(images, np.arange(20)[:, None], batch_size=8, **settings)


@pytest.fixture(scope="module")
def passes():
    data = noisy()
    return [bits(data) for _ in range(5)]


class TestPasses:
    def test_a_dataset_begins_with_the_pass_asked_for_and_one_broken_off_counts(self, passes):
        later = noisy(first_pass=2)
        next(iter(later))
        assert [bits(later), bits(later)] == passes[3:]
        assert len({str(one) for one in passes}) == 5

    def test_noise_alone_is_new_in_every_pass_and_follows_from_the_seed(self):
        kept = noisy(shuffle_seed=None)
        passes = [bits(kept) for _ in range(3)]
        assert passes[1] != passes[0]
        assert order(kept) == list(range(20))
        assert bits(noisy(shuffle_seed=None, first_pass=2)) == passes[2]
        assert bits(noisy(shuffle_seed=None, seed=3)) != passes[0]
        plain = noisy(shuffle_seed=None, augmentation="none")
        assert bits(plain) == bits(plain) != passes[0]

    def test_every_batch_has_noise_of_its_own(self):
        images = np.repeat(np.arange(64, dtype=np.uint8).reshape(1, 8, 8), 2, axis=0)
        data = dataset(images, np.zeros((2, 1)), batch_size=1, augmentation="radiology")
        (first, _), (second, _) = bits(data)
        assert first != second

    def test_keras_makes_one_per_epoch(self, passes):
        layers = [keras.Input((8, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(1)]
        model = keras.Sequential(layers)
        model.compile(loss="mse")
        data = noisy()
        for epochs in (2, 1):
            model.fit(data, epochs=epochs, shuffle=False, verbose=0)
        assert bits(data) == passes[3]


@pytest.mark.parametrize(("images", "labels", "rows", "message"), [
    (np.zeros((2, 4, 4)), 2, None, "got float64"),
    (np.zeros((2, 4, 5), np.uint8), 2, None, r"got uint8 \(2, 4, 5\)"),
    (np.zeros((2, 4, 4), np.uint8), 3, None, r"need shape \(2, classes\)"),
    (np.zeros((2, 4, 4), np.uint8), 1, [-1], "rows need to be from 0 to 1.*; got -1 to -1"),
    (np.zeros((2, 4, 4), np.uint8), 1, [2], "rows need to be from 0 to 1.*; got 2 to 2"),
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(images, labels, rows, message):
    with pytest.raises(ValueError, match=message):
        dataset(images, np.zeros((labels, 1)), rows=rows, batch_size=1)
