import numpy as np
import pytest

from cxr_study.training.augmentation import AUGMENTATIONS, AugmentationRanges, augment

SIDE = 33  # odd, so that the middle is a pixel
IMAGES = 400
ROWS, COLUMNS = np.mgrid[:SIDE, :SIDE] - SIDE // 2


def changed(image, most=None, **ranges):
    """Many copies of an image, changed within some ranges."""
    pixels = np.repeat(np.asarray(image, np.uint8)[None], IMAGES, axis=0)
    most = most or AugmentationRanges(**ranges)
    return augment(pixels, np.array([1, 2]), most).numpy().astype(float)


def dot(x, y, radius=3):
    """A bright disc, x to the right of the middle and y below it."""
    return np.where((COLUMNS - x) ** 2 + (ROWS - y) ** 2 <= radius**2, 200, 0)


def places(pixels):
    """Where the bright disc of each image lies, from the middle."""
    weights = pixels / pixels.sum(axis=(1, 2), keepdims=True)
    return (weights * COLUMNS).sum(axis=(1, 2)), (weights * ROWS).sum(axis=(1, 2))


def spread(values, least, most, slack):
    """The values reach both ends of their range, and not beyond."""
    assert least - slack <= values.min() <= least + slack + 0.1 * (most - least)
    assert most - slack - 0.1 * (most - least) <= values.max() <= most + slack


def test_no_range_changes_nothing():
    image = np.arange(SIDE * SIDE).reshape(SIDE, SIDE) % 256
    np.testing.assert_array_equal(changed(image), [image] * IMAGES)


def test_rotation_is_in_degrees_about_the_middle():
    x, y = places(changed(dot(10, 0), rotation=72))
    spread(np.degrees(np.arctan2(y, x)), -72, 72, 2)
    np.testing.assert_allclose(np.hypot(x, y), 10, atol=0.3)


def test_shift_is_a_share_of_the_side_in_both_directions():
    x, y = places(changed(dot(0, 0), shift=0.2))
    for place in (x, y):
        spread(place, -0.2 * SIDE, 0.2 * SIDE, 0.3)
    assert len(np.unique(x)) > 0.9 * IMAGES  # every image on its own
    outside = changed(np.full((SIDE, SIDE), 255), shift=0.5)
    assert {0, 255} <= set(np.unique(outside)) and np.mean(outside == 0) > 0.2


def test_zoom_shows_more_or_less_of_the_picture():
    x, y = places(changed(dot(6, 0, radius=1), zoom=0.5))
    spread(6 / x, 0.5, 1.5, 0.1)
    np.testing.assert_allclose(y, 0, atol=0.1)


def test_brightness_is_a_share_of_the_range_and_contrast_about_the_images_mean():
    pixels = changed(np.full((SIDE, SIDE), 128), brightness=0.1)
    spread(pixels[:, 5, 5], 128 - 25.5, 128 + 25.5, 1)
    pixels = changed(np.tile([100, 150], (8, 4)), contrast=0.75)
    spread(pixels[:, 0, 1] - pixels[:, 0, 0], 50 * 0.25, 50 * 1.75, 2)
    np.testing.assert_allclose(pixels.mean(axis=(1, 2)), 125, atol=1)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_flip_mirrors_left_and_right_of_a_share_of_the_images(share):
    x, y = places(changed(dot(8, 5), flip=share))
    np.testing.assert_allclose(abs(x), 8, atol=1e-3)
    np.testing.assert_allclose(y, 5, atol=1e-3)
    assert np.mean(x < 0) == pytest.approx(share, abs=0.08)


def test_a_mirrored_image_is_turned_shifted_and_zoomed_as_any_other():
    every = {"rotation": 20, "shift": 0.1, "zoom": 0.3}
    plain, mirrored = (places(changed(dot(-6, 4), **every, flip=flip)) for flip in (0, 1))
    for ours, others, sign in zip(mirrored, plain, (-1, 1), strict=True):
        assert np.std(ours) == pytest.approx(np.std(others), rel=0.3)
        assert sign * np.mean(ours) == pytest.approx(np.mean(others), abs=0.6)


def test_radiology_keeps_the_heart_on_its_side_and_is_slight():
    x, y = places(changed(dot(8, 0), AUGMENTATIONS["radiology"]) > 100)
    # Shift 1.65, zoom 0.4 and rotation 1.0 cannot move the disc further.
    assert np.all(abs(x - 8) < 2.2) and np.all(abs(y) < 2.8)


def test_paper_has_the_ranges_of_the_papers_code():
    fifth_of_a_turn = 72
    theirs = AugmentationRanges(rotation=fifth_of_a_turn, zoom=0.5, contrast=0.75, flip=0.5)
    assert AUGMENTATIONS["paper"] == theirs
