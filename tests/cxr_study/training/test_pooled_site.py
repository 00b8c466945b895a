import numpy as np
import pytest

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.sites.patient_split import SplitError
from cxr_study.training.chest_xray_site import PooledSite
from surgical_aggregation.site.contract.site import SiteError


@pytest.fixture
def members(site):
    def make(*names, **settings):
        return [site(name, **{"other_classes": "unknown", **settings}) for name in names]

    return make


@pytest.fixture
def both(members):
    return members("nih", "chexpert")


def rows(images):
    return {image.tobytes() for image in images}


class TestData:
    def test_a_split_is_one_members_after_the_other(self, both, arrays):
        pooled = arrays(PooledSite(both).data("validation"))
        parts = [arrays(member.data("validation")) for member in both]
        for ours, theirs in zip(pooled, zip(*parts, strict=True), strict=True):
            np.testing.assert_array_equal(ours, np.concatenate(theirs))

    def test_training_mixes_the_members_in_every_batch_anew(self, members, arrays):
        both = members("nih", "chexpert", augmentation="none")
        of_nih = rows(arrays(both[0].data("train"))[0])
        data = PooledSite(both).data("train", training=True)
        orders = []
        for _ in range(2):
            images, labels = arrays(data)
            whose = np.array([image.tobytes() in of_nih for image in images])
            assert whose.any() and not whose.all()
            orders.append(whose.tolist())
            hernia, fracture = (UNION_CLASSES.index(name) for name in ("Hernia", "Fracture"))
            assert (
                np.isnan(labels[whose, fracture]).all() and np.isnan(labels[~whose, hernia]).all()
            )
            assert not np.isnan(labels[whose, hernia]).any()
        assert orders[0] != orders[1]
        changes = np.count_nonzero(np.diff(orders[0]))
        assert changes > 20  # one after the other, there would be one

    def test_training_sees_every_image_once_a_pass(self, members, arrays):
        both = members("nih", "chexpert", augmentation="none")
        pooled = rows(arrays(PooledSite(both).data("train", training=True))[0])
        assert pooled == set.union(*(rows(arrays(m.data("train"))[0]) for m in both))

    def test_a_pool_of_one_is_that_site_from_the_pass_asked_for_on(self, both, arrays):
        for first_pass in (0, 1):
            ours = arrays(PooledSite(both[:1]).data("train", training=True, first_pass=first_pass))
            theirs = arrays(both[0].data("train", training=True, first_pass=first_pass))
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)


def test_the_network_has_a_unit_for_each_class_of_the_union(both):
    assert PooledSite(both).model().output_shape == (None, 20)


class TestClasses:
    def test_they_are_the_members(self, both):
        assert PooledSite(both).classes == UNION_CLASSES

    def test_members_that_differ_are_refused_with_what_to_do(self, members):
        pooled = PooledSite(members("nih", "chexpert", other_classes="omit"))
        message = (
            f"nih has {NIH_CLASSES[0]}.* chexpert has {CHEXPERT_CLASSES[0]}.*Set other_classes"
        )
        with pytest.raises(SiteError, match=message):
            _ = pooled.classes

    def test_members_that_share_a_patient_are_refused(self, members):
        with pytest.raises(SplitError, match="a patient belongs to one site"):
            _ = PooledSite(members("nih", "nih")).classes
