"""Where a site's images lie among the features, and how far others are."""

import json

import numpy as np
import pytest

from surgical_aggregation.aggregation import feature_statistics
from surgical_aggregation.aggregation.feature_statistics import distances, fault, statistics_of

OWN = np.random.default_rng(0).normal([0, 5, 2], [1, 10, 0], (1000, 3)).astype(np.float32)


def test_mean_variance_and_the_distance_that_99_of_100_own_images_keep():
    made = json.loads(json.dumps(statistics_of(OWN)))
    np.testing.assert_allclose(made["mean"], OWN.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(made["variance"], OWN.var(axis=0), rtol=1e-5, atol=1e-9)
    assert made["images"] == 1000 and fault(made, 3) is None
    assert (distances(OWN, made) <= made["limit"]).mean() == pytest.approx(0.99, abs=0.001)


def test_a_distance_is_the_mean_square_of_standard_scores():
    made = {"mean": [0, 10], "variance": [4, 100]}
    others = np.float32([[0, 10], [2, 10], [4, 30]])
    np.testing.assert_allclose(distances(others, made), [0, 0.5, 4], rtol=1e-4)


def test_few_images_or_a_feature_that_is_not_finite_give_none():
    assert statistics_of(OWN[: feature_statistics.FEWEST_IMAGES - 1]) is None
    assert statistics_of(OWN[: feature_statistics.FEWEST_IMAGES]) is not None
    assert statistics_of(np.where(OWN > 30, np.nan, OWN)) is None


@pytest.mark.parametrize(("change", "why"), [
    ({"mean": 3}, "must be lists"),
    ({"mean": [1.0]}, "need one number per feature"),
    ({"variance": [1.0, float("nan"), 0]}, "got nan"),
    ({"mean": [1.0, "2", 0]}, "got '2'"),
    ({"variance": [1.0, -1.0, 0]}, "variance of a feature must be from 0 to"),
    ({"variance": [1.0, 1e300, 0]}, "to 4.29077e+09; got 1e+300"),
    ({"variance": [0, 0.0, 0]}, "all features are constant"),
    ({"mean": [1.0, -1e30, 0]}, "mean of a feature must be from -65504 to 65504; got -1e+30"),
    ({"limit": 1e308}, "limit must be from 0 to 100.1; got 1e+308"),
    ({"limit": 10**5000}, "limit must be from 0 to 100.1; got a whole number of 16610 bits"),
    ({"images": 3}, "number of images must be from 50 to 1e+12; got 3"),
    ({"mean": [0.0] * 4, "variance": [1.0] * 4}, "need one number per feature, 3; got 4 and 4"),
    ({"more": 1}, "must be mean, variance, limit and images"),
])  # fmt: skip
def test_malformed_statistics_are_refused(change, why):
    assert why in fault({**statistics_of(OWN), **change}, 3)
    assert "must be mean" in fault([1], 3)


@pytest.mark.parametrize("images", [50, 99, 100, 101, 1000])
def test_no_honest_limit_is_above_what_one_image_in_a_hundred_allows(images):
    """All features are equal but one in a hundred, which is as far away as possible."""
    features = np.zeros((images, 4), np.float32)
    features[: max(1, images // 100)] = 1e4
    assert statistics_of(features)["limit"] <= 100.1


@pytest.mark.parametrize(("widths", "kept"), [
    ([1.0, 4.0], [1.0, 4.0]),  # as wide as another may be
    ([1.0, 40.0], [1.0, 4.0]), ([1.0, 2.0, 40.0], [1.0, 2.0, 8.0]),
])  # fmt: skip
def test_a_limit_is_lowered_where_images_would_lie_much_wider_than_at_the_middle_site(widths, kept):
    sites = {str(n): {"limit": width / 9, "variance": [9.0]} for n, width in enumerate(widths)}
    assert [9 * limit for limit in feature_statistics.limits(sites).values()] == pytest.approx(kept)


def test_a_site_whose_images_are_of_another_kind_is_believed():
    sites = {"a": statistics_of(OWN), "b": statistics_of(OWN), "other": statistics_of(OWN + 50)}
    limits = feature_statistics.limits(sites)
    found = {site: (distances(OWN + 50, sites[site]) > limits[site]).mean() for site in sites}
    assert found["a"] == found["b"] == 1 and found["other"] < 0.02
