import dataclasses

import numpy as np
import pytest

from cxr_study.data.census.across_sites import compare
from cxr_study.data.census.pixels import BINS, PER, SIDE, Thumbnails, moments
from cxr_study.data.census.shareable_census import CensusError


@pytest.fixture
def site(shared):
    return lambda name, **changes: dataclasses.replace(shared, site=name, **changes)


def thumbnails(seed, number=200):
    values = np.random.default_rng(seed).normal(size=(number, SIDE * SIDE))
    return Thumbnails(values, [str(i) for i in range(number)])


def test_distance_is_0_for_the_same_grey_values_and_1_for_no_common_one(site):
    black, white = [PER] + [0] * (BINS - 1), [0] * (BINS - 1) + [PER]
    greys = {"a": black, "b": black, "c": None, "d": white}
    across = compare([site(name, intensity=grey) for name, grey in greys.items()], {})
    assert list(across.intensities) == ["a", "b", "d"]
    np.testing.assert_allclose(across.distances, [[0, 0, 1], [0, 0, 1], [1, 1, 0]])


def test_images_at_hand_are_counted_in_the_plane_of_all_sites(site):
    own = {"a": thumbnails(0), "b": thumbnails(1)}
    across = compare([site(n, features=moments(t.values)) for n, t in own.items()], {"a": own["a"]})
    assert sum(part.images for part in across.rectangles["a"]) == 200
    assert list(across.rectangles) == ["a"]
    assert set(across.features) == {"a", "b"}
    told = across.to_json()["axes"]
    assert told.keys() == vars(across.plane).keys()
    for name, value in told.items():
        np.testing.assert_array_equal(value, getattr(across.plane, name))
    across = compare([site("a", features=None)], {"a": thumbnails(0)})
    assert across.plane is None and not across.rectangles and across.to_json()["axes"] is None
    with pytest.raises(CensusError, match="more than one is called 'a'"):
        compare([site("a"), site("a")], {})
