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


def test_a_split_is_one_members_after_the_other(both, arrays):
    pooled = arrays(PooledSite(both).data("validation"))
    parts = [arrays(member.data("validation")) for member in both]
    for ours, theirs in zip(pooled, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(ours, np.concatenate(theirs))


def test_training_sees_every_image_once_a_pass_and_mixes_the_members_anew(members, arrays):
    both = members("nih", "chexpert", augmentation="none")
    of_nih, of_chexpert = (rows(arrays(member.data("train"))[0]) for member in both)
    data = PooledSite(both).data("train", training=True)
    hernia, fracture = (UNION_CLASSES.index(name) for name in ("Hernia", "Fracture"))
    orders = []
    for _ in range(2):
        images, labels = arrays(data)
        assert rows(images) == of_nih | of_chexpert
        whose = np.array([image.tobytes() in of_nih for image in images])
        orders.append(whose.tolist())
        assert np.isnan(labels[whose, fracture]).all() and np.isnan(labels[~whose, hernia]).all()
        assert not np.isnan(labels[whose, hernia]).any()
    assert orders[0] != orders[1]
    assert np.count_nonzero(np.diff(orders[0])) > 20  # one after the other, there would be one


def test_a_pool_of_one_is_that_site_from_the_pass_asked_for_on(both, arrays):
    for first_pass in (0, 1):
        ours = arrays(PooledSite(both[:1]).data("train", training=True, first_pass=first_pass))
        theirs = arrays(both[0].data("train", training=True, first_pass=first_pass))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_classes_are_the_members_who_must_agree_and_share_no_patient(both, members):
    assert PooledSite(both).classes == UNION_CLASSES
    assert PooledSite(both).model().output_shape == (None, 20)
    message = f"nih has {NIH_CLASSES[0]}.* chexpert has {CHEXPERT_CLASSES[0]}.*Set other_classes"
    with pytest.raises(SiteError, match=message):
        _ = PooledSite(members("nih", "chexpert", other_classes="omit")).classes
    with pytest.raises(SplitError, match="a patient belongs to one site"):
        _ = PooledSite(members("nih", "nih")).classes
