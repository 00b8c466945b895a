import numpy as np
import pytest

from flare import Engine, context
from surgical_aggregation.site.contract.restricted_site import PermittedSite, find_site, permitted
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import SitePolicy
from surgical_aggregation.wire.privacy_json import PolicyError

CLASSES = ("Edema", "Nodule/Mass", "Mass", "Hernia")


@pytest.fixture
def whole(tiny):
    return tiny(*CLASSES)


@pytest.fixture
def north(tiny):
    return tiny("Edema", "Mass")


@pytest.fixture
def cut(whole):
    return PermittedSite(whole, {"Edema": "why", "Mass": "why"})


class Labelled:
    """The part of a site that a policy asks for."""

    classes = CLASSES
    training_labels = np.float32(
        [[1, 0, np.nan, 1], [1, 0, np.nan, 0.7], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    )

    def __init__(self, **policy):
        self.policy = SitePolicy(**policy)


def withheld(**policy):
    site = permitted(Labelled(**policy))
    return site.withheld if isinstance(site, PermittedSite) else {}


class TestPermitted:
    def test_nothing_is_withheld_without_a_reason(self):
        assert withheld() == {}
        assert withheld(share=CLASSES, min_images=5, min_positives=1) == {}

    def test_what_is_not_shared_or_has_too_few_positives_is_withheld(self):
        few, unshared = "1 positives, 'min_positives' is 2", "not in 'share'"
        shared = ("Mass", "Hernia", "Fracture")
        assert withheld(share=shared) == {"Edema": unshared, "Nodule/Mass": unshared}
        assert withheld(min_positives=2) == {"Mass": few, "Hernia": few}  # without smoothed ones
        said = withheld(share=("Edema", "Mass"), min_positives=2)
        assert said == {"Nodule/Mass": unshared, "Hernia": unshared, "Mass": few}

    @pytest.mark.parametrize(
        ("policy", "reason"),
        [
            ({"min_images": 6}, "needs 'min_images' 6 training images; there are 5"),
            ({"share": ()}, r"none of its classes .*Edema \(not in 'share'\); Nod"),
        ],
    )
    def test_a_site_with_too_little_takes_no_part(self, policy, reason):
        with pytest.raises(SiteError, match=reason):
            permitted(Labelled(**policy))


class TestPermittedSite:
    def test_classes_and_training_labels_are_the_rest_in_their_order(self, cut, whole):
        assert cut.classes == ("Nodule/Mass", "Hernia")
        np.testing.assert_array_equal(cut.training_labels, whole.training_labels[:, [1, 3]])

    @pytest.mark.parametrize(("split", "training"), [("train", True), ("test", False)])
    def test_batches_have_the_same_images_and_those_labels(self, cut, whole, split, training):
        data = [site.data(split, training=training, first_pass=2) for site in (cut, whole)]
        batches = list(zip(*(d.as_numpy_iterator() for d in data), strict=True))
        assert len(batches) == 3 == int(data[0].cardinality())
        for (images, labels), (all_images, all_labels) in batches:
            np.testing.assert_array_equal(images, all_images)
            np.testing.assert_array_equal(labels, all_labels[:, [1, 3]])

    def test_the_network_has_the_same_body_and_a_smaller_head(self, cut, whole):
        ours, theirs = ({v.path: v for v in site.model().weights} for site in (cut, whole))
        assert list(ours) == list(theirs)
        for path, variable in ours.items():
            if path.startswith("head/"):
                assert variable.shape[-1] == 2
            else:
                assert variable.shape == theirs[path].shape

    def test_a_model_without_the_head_is_refused(self, cut, whole, monkeypatch):
        from tiny_site import tiny_model

        monkeypatch.setattr(whole, "model", lambda: tiny_model(3))
        with pytest.raises(SiteError, match="one unit for each of 4 classes; it has 3"):
            cut.model()


def found(site, policy=None, **options):
    return find_site("site", context(engine=Engine(site=site), policy=policy), **options)


class TestFindSite:
    def test_is_the_component_or_what_the_policy_shares_of_it(self, north):
        assert north.policy.report_counts
        for policy in (None, {}, {"share": ["Mass", "Edema", "Hernia"]}):
            assert found(north, policy) is north
        cut = found(north, {"share": ["Mass"], "site_files": "/data"})
        assert cut.classes == ("Mass",)
        assert cut.policy.share == ("Mass",) and cut.policy.site_files == "/data"
        assert found(north, {"share": ["Mass"]}, head_stays=True) is north
        assert not isinstance(found(north), PermittedSite)  # a policy holds for its job only

    @pytest.mark.parametrize(
        ("policy", "error", "reason"),
        [
            ({"share": []}, SiteError, "none of its classes"),
            ({"share": "Mass"}, PolicyError, "'share' needs a list"),
        ],
    )
    def test_an_unusable_policy_is_not_ignored_also_where_the_head_stays(
        self, north, policy, error, reason
    ):
        with pytest.raises(error, match=reason):
            found(north, policy, head_stays=True)

    def test_a_job_without_the_component_is_told_so(self):
        with pytest.raises(SiteError, match="Site component with id 'site'; got NoneType"):
            found(None)
