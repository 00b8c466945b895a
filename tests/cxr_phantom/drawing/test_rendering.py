from itertools import pairwise

import numpy as np
import pytest

from cxr_phantom.drawing.anatomy import sample_anatomy
from cxr_phantom.drawing.rendering import SITES, choose_devices, expose, project, render
from cxr_study.data.labels.vocabulary import UNION_CLASSES

sites = pytest.mark.parametrize("site", SITES)


def healthy(n):
    return np.zeros((n, len(UNION_CLASSES)))


def pictures(labels, site="nih", seed=0, size=64, **options):
    """Pictures of random people by random machines, from the front by default."""
    n = len(labels)
    people, devices, plainness, drawing = np.random.default_rng(seed).spawn(4)
    given = {"anatomy": sample_anatomy(n, people), "devices": choose_devices(site, n, devices)}
    given |= {"lateral": np.zeros(n, bool), "visibility": plainness.random(labels.shape)}
    return render(labels, site, drawing, size, **given | options)


@pytest.mark.parametrize("size", [32, 64, 96])
def test_pictures_are_8_bit_and_the_size_changes_the_resolution_alone(size):
    drawn = pictures(healthy(3), size=size)
    assert (drawn.shape, drawn.dtype) == ((3, size, size), np.uint8)
    assert drawn.min() < 40 < 200 < drawn.max()
    small, large = pictures(healthy(8), size=32), pictures(healthy(8), size=64)
    shrunk = large.reshape(8, 32, 2, 32, 2).mean(axis=(2, 4))
    for a, b in zip(small, shrunk, strict=True):
        assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.95


@sites
@pytest.mark.parametrize("finding", range(20), ids=UNION_CLASSES)
def test_each_finding_shows_on_the_finished_picture(finding, site):
    labels = healthy(32)
    without = pictures(labels, site).astype(float)
    labels[:, finding] = 1
    change = np.abs(pictures(labels, site) - without)
    strongest = np.sort(change.reshape(32, -1), axis=1)[:, -6:].mean(axis=1)
    assert np.median(strongest) > 20


def test_sites_look_different_and_each_picture_is_of_its_device():
    nih, chexpert = pictures(healthy(32)), pictures(healthy(32), "chexpert")
    abdomen = np.s_[:, -1, 24:40]  # covered by the border on some pictures, more at CheXpert
    assert (nih[abdomen] < 40).mean() < 0.1 < (chexpert[abdomen] < 40).mean() < 0.9
    assert np.std(nih) > 1.2 * np.std(chexpert[:, 8:-8, 8:-8])
    # CheXpert's device 0 puts an R into the upper left corner, its device 2 does not.
    drawn = pictures(healthy(60), "chexpert", devices=np.arange(60) % 2 * 2)
    marked = (drawn[:, 2:8, 2:9] > 150).any(axis=(1, 2))
    assert marked[0::2].mean() > 0.5
    assert not marked[1::2].any()


def test_pictures_from_front_and_side_may_be_mixed():
    lateral = np.arange(40) % 3 == 0
    front, mixed = pictures(healthy(40)), pictures(healthy(40), lateral=lateral)
    changed = (front != mixed).mean(axis=(1, 2))
    assert (changed[lateral] > 0.5).all()
    for a, b in zip(front[lateral], mixed[lateral], strict=True):
        assert np.corrcoef(a[16:48, 12:52].ravel(), b[16:48, 12:52].ravel())[0, 1] < 0.5
    assert mixed[~lateral].std() == pytest.approx(front[~lateral].std(), rel=0.1)


def step(device):
    """Pictures of a chest-like step: air, lung, heart, abdomen from left to right."""
    density = np.repeat(np.array([0, 0.42, 1.5, 1.75], np.float32), 16)
    return expose(np.tile(density, (30, 64, 1)), device, np.random.default_rng(0))


@sites
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
