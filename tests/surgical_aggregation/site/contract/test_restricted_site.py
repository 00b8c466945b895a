from unittest.mock import Mock

import numpy as np
import pytest

from flare import Engine, context, site_context
from surgical_aggregation.site.contract.restricted_site import PermittedSite, find_site
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.wire.privacy_json import PolicyError
from tiny_site import tiny_model

CLASSES = ("Edema", "Nodule/Mass", "Mass", "Hernia")


def test_a_restricted_site_has_fewer_labels_and_units_and_else_the_same(tiny, monkeypatch):
    whole = tiny(*CLASSES)
    cut = found(whole, {"share": ["Hernia", "Nodule/Mass"]})
    assert cut.classes == ("Nodule/Mass", "Hernia") and cut.policy is whole.policy
    np.testing.assert_array_equal(cut.training_labels, whole.training_labels[:, [1, 3]])
    for split, training in (("train", True), ("test", False)):
        data = [site.data(split, training=training, first_pass=2) for site in (cut, whole)]
        batches = list(zip(*(d.as_numpy_iterator() for d in data), strict=True))
        assert len(batches) == 3 == int(data[0].cardinality())
        for (images, labels), (all_images, all_labels) in batches:
            np.testing.assert_array_equal(images, all_images)
            np.testing.assert_array_equal(labels, all_labels[:, [1, 3]])
    wanted = [(v.path, v.shape) for v in tiny_model(2).weights]
    assert [(v.path, v.shape) for v in cut.model().weights] == wanted
    monkeypatch.setattr(whole, "model", lambda: tiny_model(3))
    with pytest.raises(SiteError, match="one unit for each of 4 classes; it has 3"):
        cut.model()


def found(site, policy=None):
    return find_site(site_context("north", Engine(site=site), policy))


class TestFindSite:
    def test_is_the_component_or_what_the_policy_shares_of_it(self, tiny):
        north = tiny("Edema", "Mass")
        assert north.policy.report_counts
        for policy in (None, {}, {"share": ["Mass", "Edema", "Hernia"]}):
            assert found(north, policy) is north
        cut = found(north, {"share": ["Mass"], "site_files": "/data"})
        assert cut.classes == cut.policy.share == ("Mass",) and cut.policy.site_files == "/data"
        assert cut.identity == "north"
        assert not cut.union_head
        north.union_head = True  # whose unlabelled classes are no fault
        assert found(north, {"share": ["Mass"]}).union_head
        assert not isinstance(found(north), PermittedSite)  # a policy holds for its job only

    def test_an_unusable_policy_is_not_ignored(self, tiny):
        for share, reason in ([], "withholds all of its classes"), ("Mass", "'share' needs a list"):
            with pytest.raises(PolicyError, match=reason):
                found(tiny("Mass"), {"share": share})
        with pytest.raises(SiteError, match="needs one Site component; got none"):
            found(None)

    def test_a_second_site_beside_it_is_refused(self, tiny):
        engine = Engine(site=tiny("Edema"), real=tiny("Mass"))
        with pytest.raises(SiteError, match="needs one Site component; got real, site"):
            find_site(context(engine=engine))


def test_training_labels_are_read_once_and_only_where_a_policy_counts(tiny, monkeypatch):
    site = tiny("Edema")
    data = Mock(side_effect=site.data)
    monkeypatch.setattr(site, "data", data)
    found(site, {"share": ["Edema"]})
    data.assert_not_called()
    for _ in range(3):
        found(site, {"min_positives": 1})
    data.assert_called_once_with("train")
    np.testing.assert_array_equal(site.training_labels, site.arrays("train")[1])
