import numpy as np
import pytest

from cxr_study.phantom.pretraining_images import SOURCE_CATEGORIES, source_images


def test_categories_are_many_balanced_and_shuffled():
    assert len(set(SOURCE_CATEGORIES)) == len(SOURCE_CATEGORIES) >= 12
    _, labels = source_images(10 * len(SOURCE_CATEGORIES) + 3, seed=0, size=16)
    counts = np.bincount(labels, minlength=len(SOURCE_CATEGORIES))
    assert counts.max() - counts.min() <= 1
    assert (np.diff(labels) == 1).mean() < 0.3


@pytest.mark.parametrize("size", [32, 64])
def test_same_seed_same_8_bit_pictures_and_another_seed_others(size):
    pictures, labels = source_images(60, seed=0, size=size)
    again, labels_again = source_images(60, seed=0, size=size)
    np.testing.assert_array_equal(pictures, again)
    np.testing.assert_array_equal(labels, labels_again)
    assert (source_images(60, seed=1, size=size)[0] != pictures).any(axis=(1, 2)).all()
    assert pictures.shape == (60, size, size) and pictures.dtype == np.uint8
    assert labels.shape == (60,)


def test_brightness_and_contrast_vary_within_each_category():
    pictures, labels = source_images(40 * len(SOURCE_CATEGORIES), seed=0)
    for category in range(len(SOURCE_CATEGORIES)):
        chosen = pictures[labels == category]
        assert chosen.mean(axis=(1, 2)).std() > 10
        assert chosen.std(axis=(1, 2)).min() > 5
