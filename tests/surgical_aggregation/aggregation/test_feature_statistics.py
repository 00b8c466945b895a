"""Where a site's images lie among the features, and how far others are."""

import json

import numpy as np
import pytest

from surgical_aggregation.aggregation.feature_statistics import (
    FEWEST_IMAGES,
    distances,
    fault,
    statistics_of,
)

OWN = np.random.default_rng(0).normal([0, 5, 2], [1, 10, 0], (1000, 3)).astype(np.float32)


def test_mean_variance_and_the_distance_that_99_of_100_own_images_keep():
    made = json.loads(json.dumps(statistics_of(OWN)))
    np.testing.assert_allclose(made["mean"], OWN.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(made["variance"], OWN.var(axis=0), rtol=1e-5, atol=1e-9)
    assert made["images"] == 1000 and fault(made) is None
    assert (distances(OWN, made) <= made["limit"]).mean() == pytest.approx(0.99, abs=0.001)


def test_a_distance_is_the_mean_square_of_standard_scores():
    made = {"mean": [0, 10], "variance": [4, 100]}
    strangers = np.float32([[0, 10], [2, 10], [4, 30]])
    np.testing.assert_allclose(distances(strangers, made), [0, 0.5, 4], rtol=1e-4)


def test_few_images_or_a_feature_that_is_not_finite_give_none():
    assert statistics_of(OWN[: FEWEST_IMAGES - 1]) is None
    assert statistics_of(OWN[:FEWEST_IMAGES]) is not None
    assert statistics_of(np.where(OWN > 30, np.nan, OWN)) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"mean": 3}, "must be lists"),
        ({"mean": [1.0]}, "must be as many"),
        ({"mean": [], "variance": []}, "must be as many"),
        ({"variance": [1.0, float("nan"), 0]}, "finite numbers"),
        ({"mean": [1.0, "2", 0]}, "finite numbers"),
        ({"variance": [1.0, -1.0, 0]}, "0 or more"),
        ({"images": 3}, "at least 50 images"),
        ({"more": 1}, "must be mean, variance, limit and images"),
    ],
)
def test_what_a_site_may_not_say(change, why):
    assert why in fault({**statistics_of(OWN), **change})
    assert "must be mean" in fault([1])
