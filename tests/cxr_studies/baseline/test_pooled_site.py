import numpy as np
import pandas as pd
import pytest

from cxr_studies.baseline.pooled_site import ImageRows, PooledSite, pool
from cxr_study.common.errors import InputError
from cxr_study.data.images.image_store import Images
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.training.chest_xray_site import ChestXraySite
from surgical_aggregation.site.contract.site import SiteError


@pytest.fixture
def members(drawn_sites):
    """Makes sites of the study."""

    def make(*names, **settings):
        how = {"image_size": 16, "batch_size": 8, "other_classes": "unknown", **settings}
        return [ChestXraySite(name, drawn_sites, **how) for name in names]

    return make


def arrays(data):
    """All images and labels of a dataset."""
    images, labels = zip(*data.as_numpy_iterator(), strict=True)
    return np.concatenate(images), np.concatenate(labels)


class TestPooledSite:
    def test_a_split_is_one_members_after_the_other(self, members):
        both = members("nih", "chexpert")
        pooled = arrays(PooledSite(both).data("validation"))
        parts = [arrays(member.data("validation")) for member in both]
        for ours, theirs in zip(pooled, zip(*parts, strict=True), strict=True):
            np.testing.assert_array_equal(ours, np.concatenate(theirs))

    def test_training_sees_every_image_once_a_pass_and_mixes_the_members_again(self, members):
        both = members("nih", "chexpert", augmentation="none")
        of_nih, of_chexpert = (
            {image.tobytes() for image in arrays(member.data("train"))[0]} for member in both
        )
        data = PooledSite(both).data("train", training=True)
        hernia, fracture = (UNION_CLASSES.index(name) for name in ("Hernia", "Fracture"))
        orders = []
        for _ in range(2):
            images, labels = arrays(data)
            assert {image.tobytes() for image in images} == of_nih | of_chexpert
            nihs = np.array([image.tobytes() in of_nih for image in images])
            orders.append(nihs.tolist())
            assert np.isnan(labels[nihs, fracture]).all() and np.isnan(labels[~nihs, hernia]).all()
            assert not np.isnan(labels[nihs, hernia]).any()
        assert orders[0] != orders[1]
        assert np.count_nonzero(np.diff(orders[0])) > 70  # one after the other, there would be one

    def test_a_pool_of_one_is_that_site_from_the_pass_asked_for_on(self, members):
        one = members("nih")
        for first_pass in (0, 1):
            ours = arrays(PooledSite(one).data("train", training=True, first_pass=first_pass))
            theirs = arrays(one[0].data("train", training=True, first_pass=first_pass))
            np.testing.assert_equal(ours, theirs)

    def test_classes_are_the_members_who_must_agree_and_share_no_patient(self, members):
        both = PooledSite(members("nih", "chexpert"))
        assert both.classes == UNION_CLASSES
        assert both.model().output_shape == (None, 20)
        message = f"nih has {NIH_CLASSES[0]}.* chexpert has {CHEXPERT_CLASSES[0]}.*Set other_class"
        with pytest.raises(SiteError, match=message):
            _ = PooledSite(members("nih", "chexpert", other_classes="omit")).classes
        with pytest.raises(InputError, match="a patient belongs to one site"):
            _ = PooledSite(members("nih", "nih")).classes


def images(*values, side=2):
    return np.repeat(np.array(values, np.uint8), side * side).reshape(-1, side, side)


def test_every_pooled_image_keeps_its_labels():
    first = Images(pd.DataFrame({"A": [1, 2]}), images(10, 10, 12), np.array([2, 0]))
    second = Images(pd.DataFrame({"A": [np.nan]}), images(20, 21), np.array([1]))
    pooled = pool([first, second])
    assert pooled.pixels[pooled.rows][:, 0, 0].tolist() == [12, 10, 21]
    wanted = [[1, np.nan], [2, np.nan], [np.nan, np.nan]]
    np.testing.assert_array_equal(pooled.labels(["A", "B"]), wanted)


def test_rows_continue_where_the_array_before_ends_and_are_copied_when_asked_for(tmp_path):
    images(3, 4).tofile(tmp_path / "pixels")
    mapped = np.memmap(tmp_path / "pixels", np.uint8, shape=(2, 2, 2))
    rows = ImageRows([images(1, 2), images(), mapped, images(5), images()])
    assert rows.shape == (5, 2, 2) and rows.dtype == np.uint8 and len(rows) == 5
    mapped[1] = 9
    given = rows[np.array([4, 0, 3, 3, 2])]
    np.testing.assert_array_equal(given, images(5, 1, 9, 9, 3))
    given[:] = 7
    assert mapped[1, 0, 0] == 9
    with pytest.raises(ValueError, match=r"one side.*\(2, 2\), \(4, 4\)"):
        ImageRows([images(1), images(1, side=4)])
