import pytest

from flare import context
from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy, site_policy
from surgical_aggregation.wire.policy_scope import PolicyError, scope_properties


def policy(**properties):
    return site_policy(context(policy=properties))


class TestSitePolicy:
    def test_without_a_policy_everything_is_as_the_job_asks(self):
        assert site_policy(context()) == NO_POLICY
        assert NO_POLICY.share is None and NO_POLICY.report_counts
        assert NO_POLICY.min_images == NO_POLICY.min_positives == 0

    def test_any_policy_keeps_counts_at_the_site_unless_it_says_otherwise(self):
        assert policy() == SitePolicy(report_counts=False)
        assert policy(report_counts=True).report_counts

    def test_says_what_was_written(self):
        written = {
            "share": ["Edema", "Nodule/Mass"], "min_images": 100, "min_positives": 20,
            "report_counts": True, "site_files": "/data/sites",
        }  # fmt: skip
        assert policy(**written) == SitePolicy(
            ("Edema", "Nodule/Mass"), 100, 20, True, "/data/sites"
        )

    @pytest.mark.parametrize(
        ("key", "value", "needed"),
        [
            ("share", "Edema", "a list of class names"),
            ("share", ["Edema", 3], "a list of class names"),
            ("share", None, "a list of class names"),
            ("min_images", -1, "a whole number, 0 or more"),
            ("min_positives", 2.5, "a whole number, 0 or more"),
            ("min_positives", True, "a whole number, 0 or more"),
            ("report_counts", "no", "true or false"),
            ("report_counts", 0, "true or false"),
            ("site_files", "", "the path of a folder"),
            ("site_files", 7, "the path of a folder"),
        ],
    )
    def test_a_value_of_another_kind_is_refused_by_key(self, key, value, needed):
        with pytest.raises(PolicyError) as refusal:
            policy(**{key: value})
        assert str(refusal.value) == f"local/privacy.json: {key!r} needs {needed}; got {value!r}."

    def test_a_misspelt_key_is_refused_with_those_there_are(self):
        with pytest.raises(PolicyError, match=r"keys share, min_images, .*; got \['shares'\]"):
            policy(shares=["Edema"])

    def test_a_servers_key_is_no_sites(self):
        with pytest.raises(PolicyError, match="permitted"):
            policy(permitted={})


class TestScopeProperties:
    def test_are_none_where_the_place_has_no_policy(self):
        assert scope_properties(context(), ["share"]) is None
        assert scope_properties(context(policy={}), ["share"]) == {}

    def test_that_are_no_properties_are_refused(self):
        with pytest.raises(PolicyError, match=r"got \['share'\]"):
            scope_properties(context(policy=["share"]), ["share"])

    def test_are_a_copy(self):
        own = {"share": []}
        scope_properties(context(policy=own), ["share"]).clear()
        assert own == {"share": []}
