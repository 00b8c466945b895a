import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxr_study.data.census.pixels import (
    BINS,
    PER,
    REACH,
    SIDE,
    common_axes,
    measure,
    moments,
    rectangles,
)
from profiles import examples


def test_grey_values_are_the_mean_over_the_rows_asked_for():
    pixels = np.stack([np.zeros((16, 16), np.uint8), np.full((16, 16), 255, np.uint8)])
    histogram, _ = measure(pixels, np.array([0, 1]))
    assert histogram.tolist() == [PER / 2] + [0] * (BINS - 2) + [PER / 2]
    assert measure(pixels, np.array([1]))[0][-1] == PER
    told = []
    measure(pixels, np.zeros(1030, int), lambda *so_far: told.append(so_far))
    assert told == [(1024, 1030), (1030, 1030)]


def test_a_thumbnail_is_the_same_whatever_the_exposure():
    image = np.add.outer(np.arange(32), 2 * np.arange(32)).astype(np.uint8)
    _, thumbnails = measure(np.stack([image, 2 * image + 20]), np.array([0, 1]))
    np.testing.assert_allclose(thumbnails[0], thumbnails[1], atol=1e-6)
    assert thumbnails.shape == (2, SIDE * SIDE)
    assert thumbnails.mean() == pytest.approx(0) and thumbnails.std() == pytest.approx(1)


def test_axes_of_pooled_moments_are_those_of_all_images_together():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 300, SIDE * SIDE))
    first[:, 5] *= 9
    second[:, 7] += 6
    axes = common_axes([moments(first), moments(second)])
    together = np.concatenate([first, second])
    variances = np.linalg.eigvalsh(np.cov(together, rowvar=False, bias=True))[::-1]
    np.testing.assert_allclose(axes.spread**2, variances[:2], rtol=1e-3)
    assert np.abs(axes.directions).argmax(axis=0).tolist() == [5, 7]
    assert axes.project(together).std(axis=0) == pytest.approx([1, 1], rel=1e-3)
    mean, covariance = axes.ellipse(moments(first))
    places = axes.project(first)
    np.testing.assert_allclose(mean, places.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(covariance, np.cov(places.T, bias=True), atol=1e-3)


def test_rectangles_are_cut_until_a_part_would_be_too_small():
    places = np.array([[-1, 0]] * 5 + [[1, 0]] * 5, float)
    patients = [str(i) for i in range(10)]
    assert len(rectangles(places, patients, 5)) == 2
    assert len(rectangles(places, patients, 6)) == 1
    assert rectangles(places, patients, 11) == []
    # Images of one patient count once.
    assert len(rectangles(places, ["1"] * 5 + list("23456"), 5)) == 1


@settings(max_examples=examples(40))
@given(st.integers(0, 10**6), st.integers(2, 20))
def test_no_rectangle_holds_few_patients_and_all_together_hold_every_image(seed, min_count):
    rng = np.random.default_rng(seed)
    places = rng.normal(scale=2, size=(200, 2))
    patients = rng.integers(0, 80, 200).astype(str)
    parts = rectangles(places, patients, min_count)
    inside = np.clip(places, -REACH, REACH - 1e-9)
    for part in parts:
        x, y = inside[:, 0] - part.left, inside[:, 1] - part.bottom
        here = (x >= 0) & (x < part.width) & (y >= 0) & (y < part.height)
        assert here.sum() == part.images
        assert len(set(patients[here])) >= min_count
    assert sum(part.images for part in parts) == 200
    assert sum(part.width * part.height for part in parts) == pytest.approx((2 * REACH) ** 2)
