import numpy as np
import pytest

from cxr_phantom.pretraining_images import SOURCE_CATEGORIES, source_images


def test_categories_are_many_balanced_shuffled_and_vary_in_brightness_and_contrast():
    number = len(SOURCE_CATEGORIES)
    assert len(set(SOURCE_CATEGORIES)) == number >= 12
    pictures, labels = source_images(40 * number + 3, seed=0)
    assert np.ptp(np.bincount(labels, minlength=number)) <= 1
    assert (np.diff(labels) == 1).mean() < 0.3
    for category in range(number):
        chosen = pictures[labels == category]
        assert chosen.mean(axis=(1, 2)).std() > 10
        assert chosen.std(axis=(1, 2)).min() > 5


@pytest.mark.parametrize("size", [32, 64])
def test_same_seed_same_8_bit_pictures_and_another_seed_others(size):
    (pictures, labels), again = (source_images(60, seed=0, size=size) for _ in range(2))
    np.testing.assert_array_equal(pictures, again[0])
    np.testing.assert_array_equal(labels, again[1])
    assert (source_images(60, seed=1, size=size)[0] != pictures).any(axis=(1, 2)).all()
    assert pictures.shape == (60, size, size) and pictures.dtype == np.uint8
    assert labels.shape == (60,)
