import dataclasses

import numpy as np
import pytest

from cxr_audit.census.across_sites import compare
from cxr_audit.census.pixels import BINS, PER
from cxr_audit.census.shareable_census import CensusError


@pytest.fixture
def site(shared):
    return lambda name, **changes: dataclasses.replace(shared, site=name, **changes)


def test_distance_is_0_for_the_same_grey_values_and_1_for_no_common_one(site):
    black, white = [PER] + [0] * (BINS - 1), [0] * (BINS - 1) + [PER]
    greys = {"a": black, "b": black, "c": None, "d": white}
    across = compare([site(name, intensity=grey) for name, grey in greys.items()])
    assert list(across.intensities) == ["a", "b", "d"]
    np.testing.assert_allclose(across.distances, [[0, 0, 1], [0, 0, 1], [1, 1, 0]])


def test_two_sites_of_one_name_are_refused(site):
    with pytest.raises(CensusError, match="more than one is called 'a'"):
        compare([site("a"), site("a")])
