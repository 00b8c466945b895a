import numpy as np
import pytest

from cxr_study.phantom import render
from cxr_study.vocabulary import UNION_CLASSES


def healthy(n):
    return np.zeros((n, len(UNION_CLASSES)))


def pictures(labels, site="nih", seed=0, size=64):
    return render(labels, site, np.random.default_rng(seed), size)


@pytest.mark.parametrize("size", [32, 64, 96])
def test_pictures_are_8_bit_and_of_the_size_asked_for(size):
    drawn = pictures(healthy(3), size=size)
    assert drawn.shape == (3, size, size)
    assert drawn.dtype == np.uint8
    assert drawn.min() < 40 < 200 < drawn.max()


def test_size_changes_the_resolution_and_not_the_chest():
    small, large = pictures(healthy(8), size=32), pictures(healthy(8), size=64)
    shrunk = large.reshape(8, 32, 2, 32, 2).mean(axis=(2, 4))
    for a, b in zip(small, shrunk, strict=True):
        assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.95


def test_same_seed_same_pictures_and_another_seed_others():
    labels = np.random.default_rng(1).random((40, 20)) < 0.3
    np.testing.assert_array_equal(pictures(labels), pictures(labels))
    assert (pictures(labels) != pictures(labels, seed=1)).any(axis=(1, 2)).all()


def test_patients_differ():
    drawn = pictures(healthy(10)).astype(float)
    distance = np.abs(drawn[:, None] - drawn[None]).mean(axis=(2, 3))
    assert distance[~np.eye(10, dtype=bool)].min() > 5


@pytest.mark.parametrize("site", ["nih", "chexpert"])
@pytest.mark.parametrize("finding", range(len(UNION_CLASSES)), ids=UNION_CLASSES)
def test_each_finding_shows_on_the_finished_picture(finding, site):
    labels = healthy(32)
    without = pictures(labels, site).astype(float)
    labels[:, finding] = 1
    change = np.abs(pictures(labels, site) - without)
    strongest = np.sort(change.reshape(32, -1), axis=1)[:, -6:].mean(axis=1)
    assert np.median(strongest) > 25


def test_sites_look_different():
    nih, chexpert = pictures(healthy(32)), pictures(healthy(32), "chexpert")
    abdomen = np.s_[:, -1, 24:40]  # covered by the border on some of CheXpert's pictures
    assert (nih[abdomen] > 150).all()
    assert 0.1 < (chexpert[abdomen] < 40).mean() < 0.9
    assert np.std(nih) > 1.1 * np.std(chexpert[:, 8:-8, 8:-8])


def test_ap_hearts_are_larger_than_pa_hearts():
    def dense(view):
        rng = np.random.default_rng(0)
        drawn = render(healthy(32), "nih", rng, views=np.array([view] * 32))
        return (drawn[:, 32:44, 16:48] > 150).mean()

    assert dense("AP") > 1.1 * dense("PA")


def test_unknown_site_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'mimic'; use one of \['chexpert', 'nih'\]"):
        pictures(healthy(1), site="mimic")


def test_labels_with_a_column_too_few_are_refused():
    with pytest.raises(ValueError, match=r"shape \(n, 20\).*got \(1, 14\)"):
        pictures(np.zeros((1, 14)))
