import numpy as np
import pytest

from cxr_study.input_pipeline import dataset

pytestmark = pytest.mark.keras

MEAN, SD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def flat(n, side=8):
    """Image i is all i, and its label is i."""
    images = np.broadcast_to(np.arange(n, dtype=np.uint8)[:, None, None], (n, side, side))
    return images, np.arange(n, dtype=np.float32)[:, None]


def order(data):
    return np.concatenate([labels.numpy()[:, 0] for _, labels in data]).tolist()


def epoch(data):
    return np.concatenate([pixels.numpy() for pixels, _ in data])


def pixel_values(pixels):
    return pixels * SD * 255 + MEAN * 255


def disc(n=40, side=32):
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    image = np.where((x + 6) ** 2 + y**2 < 30, 200, 50).astype(np.uint8)  # left of the middle
    return np.repeat(image[None], n, axis=0), np.zeros((n, 1), np.float32)


def test_pixels_are_normalised_as_imagenet():
    images = np.array([[[0]], [[255]]], dtype=np.uint8)
    pixels = epoch(dataset(images, np.zeros((2, 1)), batch_size=2))
    assert pixels.dtype == np.float32
    np.testing.assert_allclose(pixels[:, 0, 0], [-MEAN / SD, (1 - MEAN) / SD], rtol=1e-6)


def test_batches_have_known_shapes_and_number():
    data = dataset(*flat(5), batch_size=2)
    assert [spec.shape.as_list() for spec in data.element_spec] == [[None, 8, 8, 3], [None, 1]]
    assert data.cardinality() == 3
    assert [len(labels) for _, labels in data] == [2, 2, 1]


def test_without_shuffling_the_order_is_kept():
    assert order(dataset(*flat(7), batch_size=3)) == list(range(7))


def test_rows_choose_among_more_images():
    images, labels = flat(9)
    rows = np.array([7, 2, 2, 5])
    chosen = dataset(images, labels[rows], rows=rows, batch_size=3, shuffle_seed=1, augment=True)
    copied = dataset(images[rows], labels[rows], batch_size=3, shuffle_seed=1, augment=True)
    for _ in range(2):
        for ours, theirs in zip(chosen, copied, strict=True):
            np.testing.assert_array_equal(ours[0], theirs[0])
            np.testing.assert_array_equal(ours[1], theirs[1])
    assert order(dataset(images, labels[rows], rows=rows, batch_size=3)) == [7, 2, 2, 5]
    assert chosen.cardinality() == 2


def test_images_stay_where_they_are_mapped(tmp_path):
    np.full((3, 4, 4), 9, np.uint8).tofile(tmp_path / "pixels")
    images = np.memmap(tmp_path / "pixels", np.uint8, shape=(3, 4, 4))
    data = dataset(images, np.zeros((1, 1)), rows=np.array([1]), batch_size=1)
    images[1] = 200  # a copy would not see this
    np.testing.assert_allclose(pixel_values(epoch(data)), 200, atol=1e-3)


@pytest.mark.parametrize("row", [-1, 2])
def test_rows_outside_of_the_images_are_refused(row):
    images, labels = flat(2)
    with pytest.raises(ValueError, match=rf"rows need to be from 0 to 1.*; got {row} to {row}"):
        dataset(images, labels[:1], rows=np.array([row]), batch_size=1)


def test_missing_labels_go_through_unchanged():
    labels = np.array([[1, np.nan], [0, 1]], dtype=np.float32)
    (_, out), *_ = dataset(flat(2)[0], labels, batch_size=2)
    np.testing.assert_array_equal(out, labels)


def test_every_epoch_has_a_new_order_that_follows_from_the_seed():
    first, second = (dataset(*flat(50), batch_size=8, shuffle_seed=1) for _ in range(2))
    epochs = [order(first), order(first)]
    assert epochs[0] != epochs[1]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert [order(second), order(second)] == epochs
    assert order(dataset(*flat(50), batch_size=8, shuffle_seed=2)) != epochs[0]


def test_labels_stay_with_their_images_when_shuffled():
    for pixels, labels in dataset(*flat(50), batch_size=8, shuffle_seed=1):
        value = pixel_values(pixels.numpy())[:, 0, 0, 0]
        np.testing.assert_allclose(value, labels.numpy()[:, 0], atol=1e-3)


def test_augmentation_agrees_bit_for_bit_and_is_new_in_every_epoch():
    first, second = (dataset(*disc(), batch_size=8, augment=True, seed=4) for _ in range(2))
    epochs = [epoch(first), epoch(first)]
    np.testing.assert_array_equal([epoch(second), epoch(second)], epochs)
    assert not np.array_equal(*epochs)
    assert not np.array_equal(epoch(dataset(*disc(), batch_size=8, augment=True)), epochs[0])


def test_augmentation_moves_every_image_on_its_own_and_a_little():
    images, labels = disc()
    moved = pixel_values(epoch(dataset(images, labels, batch_size=40, augment=True)))[..., 0]
    bright = moved > 125
    x = (bright * np.arange(32)).sum(axis=(1, 2)) / bright.sum(axis=(1, 2))
    assert len(np.unique(x)) > 30
    # The disc lies at 9.5; shift 1.6, zoom 0.3 and rotation 0.1 cannot move it by more than two.
    assert np.all(abs(x - 9.5) < 2.2)
    assert np.ptp(x) > 2


def test_augmentation_relights_within_bounds():
    images = np.full((100, 8, 8), 128, np.uint8)
    data = dataset(images, np.zeros((100, 1)), batch_size=100, augment=True)
    middle = pixel_values(epoch(data))[:, 4, 4, 0]
    assert 100 < middle.min() < 115 and 141 < middle.max() < 156


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 4, 4)), np.zeros((2, 1)), "got float64"),
        (np.zeros((2, 4, 5), np.uint8), np.zeros((2, 1)), r"got uint8 \(2, 4, 5\)"),
        (np.zeros((2, 4, 4), np.uint8), np.zeros((3, 1)), r"need shape \(2, classes\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(images, labels, message):
    with pytest.raises(ValueError, match=message):
        dataset(images, labels, batch_size=1)
