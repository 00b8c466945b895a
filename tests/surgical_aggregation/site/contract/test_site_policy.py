import numpy as np
import pytest

from flare import context
from surgical_aggregation.site.contract import site_policy as policies
from surgical_aggregation.site.contract.site_policy import SitePolicy, site_policy, withheld
from surgical_aggregation.wire.privacy_json import PolicyError, scope_properties

CLASSES = ("Edema", "Nodule/Mass", "Mass", "Hernia")
NAN = np.nan
LABELS = np.float32([[1, 0, NAN, 1], [1, 0, NAN, 0.7], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
FEW, UNSHARED = "1 positives, 'min_positives' is 2", "not in 'share'"


def policy(**properties):
    return site_policy(context(policy=properties))


def test_without_a_policy_everything_is_as_the_job_asks_and_with_any_counts_stay():
    assert site_policy(context()) == policies.NO_POLICY == SitePolicy(None, 0, 0, True, True)
    assert policy() == SitePolicy(report_counts=False, report_features=False)
    written = dict(share=["Edema", "Mass"], min_images=100, min_positives=20, site_files="/data")
    written |= dict.fromkeys(("report_counts", "report_features", "refuse_union_head"), True)
    expected = SitePolicy(("Edema", "Mass"), 100, 20, True, True, "/data", True)
    assert policy(**written) == expected


@pytest.mark.parametrize(("key", "value", "needed"), [
    *(("share", value, "a list of class names") for value in ("Edema", ["Edema", 3])),
    ("min_images", -1, "a whole number, 0 or more"),
    *(("min_positives", value, "a whole number, 0 or more") for value in (2.5, True)),
    ("report_counts", 0, "true or false"), ("report_features", "yes", "true or false"),
    ("refuse_union_head", 1, "true or false"),
    *(("site_files", value, "the path of a folder") for value in ("", 7)),
])  # fmt: skip
def test_a_value_of_another_kind_is_refused_by_key(key, value, needed):
    with pytest.raises(PolicyError) as refusal:
        policy(**{key: value})
    assert str(refusal.value) == f"local/privacy.json: {key!r} needs {needed}; got {value!r}."


def test_properties_of_a_scope_are_a_mapping_with_known_keys_of_which_one_gets_a_copy():
    own = {"share": []}
    scope_properties(context(policy=own), ["share"]).clear()
    assert own == {"share": []}
    with pytest.raises(PolicyError, match=r"got \['share'\]"):
        scope_properties(context(policy=["share"]), ["share"])
    with pytest.raises(PolicyError, match=r"keys share, min_images, .*; got \['shares'\]"):
        policy(shares=["Edema"])


@pytest.mark.parametrize(("policy", "stay"), [
    ({}, {}), ({"share": CLASSES, "min_images": 5, "min_positives": 1}, {}),
    ({"share": ("Mass", "Hernia", "Fracture")}, {"Edema": UNSHARED, "Nodule/Mass": UNSHARED}),
    ({"min_positives": 2}, {"Mass": FEW, "Hernia": FEW}),  # without smoothed ones
    ({"share": ("Edema", "Mass"), "min_positives": 2},
     {"Nodule/Mass": UNSHARED, "Hernia": UNSHARED, "Mass": FEW}),
])  # fmt: skip
def test_what_is_not_shared_or_has_too_few_positives_is_withheld(policy, stay):
    assert withheld(SitePolicy(**policy), CLASSES, lambda: LABELS) == stay


def test_a_minimum_of_positives_also_withholds_a_class_without_a_negative():
    labels = np.float32([[1, 1, 0, NAN], [1, 0, 1, 1], [1, NAN, 1, 0.7]])
    stay = {name: "no negatives, 'min_positives' is 1" for name in ("Edema", "Hernia")}
    assert withheld(SitePolicy(min_positives=1), CLASSES, lambda: labels) == stay
    assert withheld(SitePolicy(), CLASSES, lambda: labels) == {}


@pytest.mark.parametrize(("policy", "reason"), [
    ({"min_images": 6}, "needs 'min_images' 6 training images; there are 5"),
    ({"share": ()}, r"withholds all of its classes: .*Edema \(not in 'share'\); Nod"),
])  # fmt: skip
def test_a_site_with_too_little_takes_no_part(policy, reason):
    with pytest.raises(PolicyError, match=reason):
        withheld(SitePolicy(**policy), CLASSES, lambda: LABELS)
