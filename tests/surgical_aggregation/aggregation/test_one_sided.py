"""Classes of which all training labels of a site are the same."""

import numpy as np
import pytest

from surgical_aggregation.aggregation.one_sided import lacking, never_learned

NAN = np.nan


@pytest.mark.parametrize(("labels", "lacks"), [
    ([0, 1], None), ([1, NAN], "negative"), ([0, NAN], "positive"), ([NAN, NAN], "labelled"),
    ([0.7, 0], None), ([0.7, 1], "negative"), ([0.2, 0], "positive"),  # smoothed
    ([0.5, NAN], "positive"),
])  # fmt: skip
def test_a_class_with_one_kind_of_label_lacks_the_other(labels, lacks):
    column = np.array(labels, np.float32)[:, None]
    assert lacking(["Edema"], column) == ({"Edema": lacks} if lacks else {})


@pytest.mark.parametrize(("lacks", "why"), [
    ({}, None), ({"a": "positive"}, None),
    ({"a": "positive", "b": "positive"}, "no site had a positive image"),
    ({"a": "negative", "b": "negative"}, "no site had a negative image"),
    ({"a": "negative", "b": "positive"}, "no site had both a positive and a negative image"),
    ({"a": "negative", "b": "labelled"}, "no site had a negative image"),
    ({"a": "labelled", "b": "labelled"}, "no site had a labelled image"),
])  # fmt: skip
def test_a_class_was_never_learned_where_it_lacks_something_at_every_site(lacks, why):
    assert never_learned({"sites": ["a", "b"], "lacking": lacks}) == why
    assert never_learned({"sites": []}) is None
