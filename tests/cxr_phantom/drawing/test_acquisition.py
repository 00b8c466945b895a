from itertools import pairwise

import numpy as np
import pytest

from cxr_phantom.drawing.acquisition import SITES, choose_devices, expose, project
from cxr_phantom.drawing.anatomy import sample_anatomy


def step(device):
    """Pictures of a chest-like step: air, lung, heart, abdomen from left to right."""
    density = np.repeat(np.array([0, 0.42, 1.5, 1.75], np.float32), 16)
    return expose(np.tile(density, (30, 64, 1)), device, np.random.default_rng(0))


@pytest.mark.parametrize("site", SITES)
def test_devices_of_a_site_differ_share_its_examinations_and_show_dense_parts_bright(site):
    assert sum(device.share for device in SITES[site]) == pytest.approx(1)
    chosen = choose_devices(site, 4000, np.random.default_rng(0))
    for k, device in enumerate(SITES[site]):
        assert (chosen == k).mean() == pytest.approx(device.share, abs=0.03)
    looks = [step(device) for device in SITES[site]]
    for pictures in looks:
        assert pictures.dtype == np.uint8
        levels = [pictures[:, 20:56, start : start + 8].mean() for start in (4, 20, 36)]
        assert levels[0] + 20 < levels[1] < levels[2] - 40
    assert all((a != b).mean() > 0.3 for a, b in pairwise(looks))


def test_the_heart_is_wider_in_ap_than_in_pa():
    people = sample_anatomy(2, np.random.default_rng(0))
    seen = project(people, np.array([True, False]))
    assert seen.heart_width[0] == people.heart_width[0]
    assert seen.heart_width[1] > 1.1 * people.heart_width[1]
