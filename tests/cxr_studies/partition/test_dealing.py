import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxr_studies.partition.dealing import deal, rarest_findings
from cxr_studies.partition.skew import Skew
from cxr_study.common.errors import InputError


def test_a_patient_is_grouped_by_the_rarest_finding_of_all_images():
    rows = [
        ("a", 1, 1, 0),  # Mass is rarer than Edema
        ("b", 1, 0, np.nan),
        ("c", 0, 0, 0),
        ("c", 1, 0, 0),  # of another image
        ("d", 1, 1, 1),  # Mass and Hernia have two patients each: the first by name
        ("e", 0, 0, 1),
        ("f", -1, 0, 0),  # an uncertain label is no positive one
    ]
    table = pd.DataFrame(rows, columns=["patient", "Edema", "Mass", "Hernia"])
    table = table.assign(image=[f"{n}.png" for n in range(7)], view="", sex="", age=np.nan)
    found = {"a": "Mass", "b": "Edema", "c": "Edema", "d": "Hernia", "e": "Hernia", "f": ""}
    assert rarest_findings(table).to_dict() == found


SPLITS = np.array(["train"] * 7 + ["validation"] + ["test"] * 2)


def dealt(skew, sites=4, patients=2000, seed=0, groups=("", "Edema")):
    """Group, split and site of patients, group by group."""
    group = np.repeat(groups, patients // len(groups))
    split = np.resize(np.repeat(SPLITS, max(1, len(group) // 20)), len(group))
    made = pd.DataFrame({"group": group, "split": split, "positive": group != ""})
    return made.assign(site=deal(made, sites, skew, seed))


def shares(made, *of):
    """Share of each site in each of some parts."""
    counts = pd.crosstab([made[name] for name in of], made["site"])
    return counts.div(counts.sum(axis=1), axis=0)


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(0, 9), st.sampled_from([0.5, 1, 5]))
def test_a_site_has_the_same_share_of_a_group_in_every_split_and_some_in_each(sites, seed, alpha):
    skew = Skew("label", alpha)
    made = dealt(skew, sites, seed=seed)
    pd.testing.assert_frame_equal(made, dealt(skew, sites, seed=seed))
    assert set(made["site"]) == set(range(sites))
    assert pd.crosstab(made["split"], made["site"]).to_numpy().all()
    for _, each in shares(made, "group", "split").groupby("group"):
        assert (each.max() - each.min()).max() <= 2 / 100  # of 100 validation patients one or two


def test_the_smaller_alpha_the_more_uneven_are_groups_each_in_its_own_way():
    def spread(alpha):
        drawn = [shares(dealt(Skew("label", alpha), seed=seed), "group") for seed in range(20)]
        return np.mean([each.to_numpy().std() for each in drawn])

    assert spread(0.3) > 1.3 * spread(1) > 2 * spread(10) > 4 * spread(1000)
    first, second = shares(dealt(Skew("label", 0.3)), "group").to_numpy()
    assert abs(first - second).max() > 0.2


def test_no_site_is_favoured_by_rounding():
    alone = [f"{number:03}" for number in range(900)]
    found = dealt(Skew("label", 1000), patients=900, groups=alone)["site"].value_counts()
    assert found.to_numpy() == pytest.approx([225] * 4, abs=50)


def test_what_no_draw_gives_every_site_is_refused():
    with pytest.raises(InputError, match=r"4 sites .* of 40 patients with alpha 0\.01\. Take a la"):
        dealt(Skew("quantity", 0.01), patients=40, groups=[""])
