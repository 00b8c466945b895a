import json

import numpy as np
import pytest

from flare import Engine, context
from surgical_aggregation.site.contract.restricted_site import PermittedSite, find_site
from surgical_aggregation.site.contract.site import Site, SiteError
from surgical_aggregation.wire.policy_scope import PolicyError
from tiny_site import TinySite


@pytest.fixture
def north(tmp_path):
    table = tmp_path / "sites.json"
    table.write_text(json.dumps({"north": {"classes": ["Edema", "Mass"], "images": 20}}))
    return TinySite("north", str(table))


def found(site, policy=None, **options):
    return find_site("site", context(engine=Engine(site=site), policy=policy), **options)


class TestFindSite:
    def test_is_the_component_where_nothing_is_withheld(self, north):
        for policy in (None, {}, {"share": ["Mass", "Edema", "Hernia"]}):
            assert found(north, policy) is north

    def test_is_cut_down_where_the_policy_withholds_a_class(self, north):
        assert found(north, {"share": ["Mass"]}).classes == ("Mass",)

    def test_a_head_that_stays_may_have_all_classes(self, north):
        assert found(north, {"share": ["Mass"]}, head_stays=True) is north

    def test_a_policy_that_keeps_the_site_away_does_so_where_the_head_stays_too(self, north):
        with pytest.raises(SiteError, match="none of its classes"):
            found(north, {"share": []}, head_stays=True)

    def test_the_site_knows_the_policy(self, north):
        assert north.policy.report_counts
        assert found(north, {"site_files": "/data"}).policy.site_files == "/data"
        assert found(north, {"share": ["Mass"]}).policy.share == ("Mass",)
        assert not isinstance(found(north), PermittedSite)  # a policy holds for its job only

    def test_a_malformed_policy_is_refused_and_not_ignored(self, north):
        with pytest.raises(PolicyError, match="'share' needs a list"):
            found(north, {"share": "Mass"})

    def test_a_job_without_the_component_is_told_so(self):
        with pytest.raises(SiteError, match="Site component with id 'site'; got NoneType"):
            found(None)


class Counting(Site):
    """A site whose images cannot be looked at for nothing."""

    classes = ("Edema",)
    asked = 0

    def model(self): ...

    def data(self, split, *, training=False, first_pass=0):
        import tensorflow as tf

        assert split == "train" and not training
        self.asked += 1
        labels = np.float32([[1], [np.nan], [0]])
        return tf.data.Dataset.from_tensor_slices((np.zeros(3), labels)).batch(2)


class TestTrainingLabels:
    def test_are_those_of_the_training_split(self):
        np.testing.assert_array_equal(Counting().training_labels, [[1], [np.nan], [0]])

    def test_images_are_gone_through_once_however_often_the_policy_is_asked(self):
        site = Counting()
        for _ in range(3):
            found(site, {"min_positives": 1})
        assert site.asked == 1

    def test_nothing_is_gone_through_where_no_number_is_asked_for(self):
        site = Counting()
        found(site, {"share": ["Edema"]})
        assert site.asked == 0
