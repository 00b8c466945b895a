import numpy as np
import pandas as pd
import pytest

from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN, assemble
from cxr_study.data.labels.uncertain_labels import LabelPolicy, apply_policy, certain

ALL = [POSITIVE, NEGATIVE, UNCERTAIN, BLANK, np.nan]


def table(**classes):
    images = [f"{i}.png" for i in range(len(next(iter(classes.values()))))]
    return assemble(classes, image=images, patient=images, view="PA")


@pytest.mark.parametrize(("policy", "uncertain", "blank"), [
    ({}, 0, 0), ({"uncertain": "zeros"}, 0, 0), ({"uncertain": "ones"}, 1, 0),
    ({"uncertain": "ignore"}, np.nan, 0),
    ({"uncertain": "ignore", "by_class": {"Mass": "ones"}}, 1, 0),  # a class's own policy
    ({"by_class": {"Edema": "ones"}, "blank": "not labelled"}, 0, np.nan),
])  # fmt: skip
def test_a_policy_decides_what_uncertain_and_blank_become(policy, uncertain, blank):
    rows = table(Mass=ALL)
    labels = apply_policy(rows, LabelPolicy(**policy))["Mass"]
    np.testing.assert_array_equal(labels, [1, 0, uncertain, blank, np.nan])
    np.testing.assert_array_equal(rows["Mass"], ALL)  # the table as read stays as it is


@pytest.mark.parametrize(
    ("policy", "low", "high"), [("smooth-zeros", 0, 0.3), ("smooth-ones", 0.55, 0.85)]
)
def test_smoothed_labels_are_spread_over_their_range(policy, low, high):
    labels = apply_policy(table(Mass=[UNCERTAIN] * 1000), LabelPolicy(uncertain=policy))["Mass"]
    assert labels.between(low, high).all()
    steps = labels.quantile([0.05, 0.5, 0.95]).diff().iloc[1:]
    assert np.allclose(steps, 0.45 * (high - low), atol=0.03)


def test_a_smoothed_label_belongs_to_image_and_class_and_is_not_tested_with():
    policy = LabelPolicy(uncertain="smooth-ones")
    rows = table(Mass=[UNCERTAIN] * 4, Edema=[UNCERTAIN] * 4)
    whole = apply_policy(rows, policy)
    pd.testing.assert_frame_equal(apply_policy(rows[::-2], policy), whole[::-2])
    assert (whole["Mass"] != whole["Edema"]).all()
    tested = certain(pd.DataFrame({"Mass": [1, 0, 0.7, np.nan]}))["Mass"]
    np.testing.assert_array_equal(tested, [1, 0, np.nan, np.nan])
