import dataclasses

import numpy as np
import pytest

from cxr_study.data.census.across_sites import compare
from cxr_study.data.census.pixels import BINS, PER, SIDE, Axes, Thumbnails, moments
from cxr_study.data.census.shareable_census import CensusError


def site(shared, name, **changes):
    return dataclasses.replace(shared, site=name, **changes)


def thumbnails(seed, number=200):
    values = np.random.default_rng(seed).normal(size=(number, SIDE * SIDE))
    return Thumbnails(values, [str(i) for i in range(number)])


def test_distance_is_0_for_the_same_grey_values_and_1_for_no_common_one(shared):
    black, white = [PER] + [0] * (BINS - 1), [0] * (BINS - 1) + [PER]
    sites = [
        site(shared, "a", intensity=black),
        site(shared, "b", intensity=black),
        site(shared, "c", intensity=None),
        site(shared, "d", intensity=white),
    ]
    across = compare(sites, {})
    assert list(across.intensities) == ["a", "b", "d"]
    np.testing.assert_allclose(across.distances, [[0, 0, 1], [0, 0, 1], [1, 1, 0]])


def test_images_at_hand_are_counted_in_the_plane_of_all_sites(shared):
    own = {"a": thumbnails(0), "b": thumbnails(1)}
    sites = [site(shared, name, features=moments(own[name].values)) for name in own]
    across = compare(sites, {"a": own["a"]})
    assert sum(part.images for part in across.rectangles["a"]) == 200
    assert list(across.rectangles) == ["a"]
    assert set(across.features) == {"a", "b"}


def test_the_plane_can_be_had_again_from_what_is_written(shared):
    own = {"a": thumbnails(0)}
    across = compare([site(shared, "a", features=moments(own["a"].values))], own)
    axes = Axes(**{name: np.array(value) for name, value in across.to_json()["axes"].items()})
    np.testing.assert_array_equal(
        axes.project(own["a"].values), across.plane.project(own["a"].values)
    )


def test_without_moments_there_is_no_plane(shared):
    across = compare([site(shared, "a", features=None)], {"a": thumbnails(0)})
    assert across.plane is None and not across.rectangles


def test_two_sites_of_one_name_are_refused(shared):
    with pytest.raises(CensusError, match="more than one is called 'a'"):
        compare([site(shared, "a"), site(shared, "a")], {})
