import numpy as np
import pandas as pd
import pytest

from cxr_study.data.labels.label_policy import LabelPolicy, LabelPolicyError, apply, certain
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN


def table(**classes):
    number = len(next(iter(classes.values())))
    images = [f"{i}.png" for i in range(number)]
    descriptors = {"image": images, "patient": images, "view": "PA", "sex": "F", "age": 50.0}
    return pd.DataFrame(descriptors | classes)


ALL = [POSITIVE, NEGATIVE, UNCERTAIN, BLANK, np.nan]


def test_by_default_uncertain_and_blank_are_negative_and_not_labelled_stays():
    assert apply(table(Mass=ALL), LabelPolicy())["Mass"].tolist()[:4] == [1, 0, 0, 0]
    assert np.isnan(apply(table(Mass=ALL), LabelPolicy())["Mass"][4])


@pytest.mark.parametrize(("policy", "becomes"), [("zeros", 0), ("ones", 1), ("ignore", np.nan)])
def test_a_policy_decides_what_uncertain_becomes(policy, becomes):
    labels = apply(table(Mass=ALL), LabelPolicy(uncertain=policy))["Mass"]
    np.testing.assert_array_equal(labels, [1, 0, becomes, 0, np.nan])


@pytest.mark.parametrize(
    ("policy", "low", "high"), [("smooth-zeros", 0, 0.3), ("smooth-ones", 0.55, 0.85)]
)
def test_smoothed_labels_are_spread_over_their_range(policy, low, high):
    labels = apply(table(Mass=[UNCERTAIN] * 1000), LabelPolicy(uncertain=policy))["Mass"]
    assert labels.between(low, high).all()
    assert np.allclose(
        labels.quantile([0.05, 0.5, 0.95]).diff()[1:], 0.45 * (high - low), atol=0.03
    )


def test_a_smoothed_label_belongs_to_image_and_class_and_not_to_the_row():
    policy = LabelPolicy(uncertain="smooth-ones")
    rows = table(Mass=[UNCERTAIN] * 4, Edema=[UNCERTAIN] * 4)
    whole = apply(rows, policy)
    pd.testing.assert_frame_equal(apply(rows[::-2], policy), whole[::-2])
    assert (whole["Mass"] != whole["Edema"]).all()


def test_a_class_may_have_its_own_policy():
    policy = LabelPolicy(by_class={"Edema": "ones"})
    labels = apply(table(Mass=[UNCERTAIN], Edema=[UNCERTAIN]), policy)
    assert labels[["Mass", "Edema"]].values.tolist() == [[0, 1]]


def test_blank_may_count_as_not_labelled():
    labels = apply(table(Mass=ALL), LabelPolicy(blank="not labelled"))["Mass"]
    np.testing.assert_array_equal(labels, [1, 0, 0, np.nan, np.nan])


def test_blank_that_nobody_decided_about_is_refused_by_its_column():
    with pytest.raises(LabelPolicyError, match="column 'Mass': 1 of 5 cells are blank; say in"):
        apply(table(Edema=[0.0] * 5, Mass=ALL), LabelPolicy(blank=None))
    assert apply(table(Mass=[1.0, 0.0]), LabelPolicy(blank=None))["Mass"].tolist() == [1, 0]


def test_the_table_as_read_stays_as_it_is():
    rows = table(Mass=ALL)
    apply(rows, LabelPolicy(uncertain="ones"))
    np.testing.assert_array_equal(rows["Mass"], ALL)


def test_soft_labels_are_not_tested_with():
    np.testing.assert_array_equal(
        certain(pd.DataFrame({"Mass": [1, 0, 0.7, np.nan]}))["Mass"], [1, 0, np.nan, np.nan]
    )
