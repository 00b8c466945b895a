"""The body that is pre-trained on drawings."""

import numpy as np
import pytest

from cxr_phantom.pretrain import SOURCE_CATEGORIES, pretrained_body, source_images
from cxr_study.training.network import build
from surgical_aggregation.site.contract.architecture import body_variables
from surgical_aggregation.site.contract.site import check_body, shapes_of


def test_a_pretrained_body_fits_has_learned_and_says_how_it_was_made():
    body = pretrained_body(images=800, epochs=6, size=32, seed=1)
    network = build("small_densenet", 2, image_size=32)
    check_body(shapes_of(body.variables), shapes_of(body_variables(network)))
    facts = {
        "backbone": "small_densenet", "image_size": 32, "weights": "source pictures", "seed": 1,
        "head_features": network.layers[-1].kernel.shape[0],
    }  # fmt: skip
    assert {name: body.manifest[name] for name in facts} == facts
    assert body.manifest["source_accuracy"] > 2 / len(SOURCE_CATEGORIES)


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
