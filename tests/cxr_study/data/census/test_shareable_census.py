import dataclasses
import json

import numpy as np
import pytest

from cxr_study.data.census.census import OUTCOMES, STATES
from cxr_study.data.census.pixels import SIDE, Moments
from cxr_study.data.census.shareable_census import (
    CensusError,
    SharedClass,
    from_json,
    outcomes,
    prevalence,
    read_shared,
    share,
)

PIXELS = SIDE * SIDE


def with_labels(shared, images, *, policy="zeros", blank="negative", **read):
    """A site with one class, and these labels of it as read."""
    cells = {state: read.get(state.replace(" ", "_"), 0) for state in STATES}
    classes = {"Edema": SharedClass(policy, cells)}
    return dataclasses.replace(shared, blank=blank, images=images, classes=classes)


class TestShare:
    def test_large_counts_are_shared_as_they_are(self, shared):
        assert (shared.images, shared.patients) == (600, 500)
        assert shared.views["PA"] == 300 and shared.sex["unknown"] == 100
        assert shared.classes["Mass"].read["uncertain"] == 300

    def test_every_table_is_suppressed(self, large_census):
        shared = share(large_census(4), 10, None, None)  # 24 images
        small = {"views": shared.views, "sex": shared.sex, "age": shared.age}
        small |= {name: entry.read for name, entry in shared.classes.items()}
        for name, cells in small.items():
            assert None in cells.values(), name
            assert not [n for n in cells.values() if n and n < 10], name

    def test_neither_names_nor_splits_nor_pairs_of_classes_nor_bad_images_are_shared(self, shared):
        assert set(shared.to_json()) == {
            "format", "site", "min_count", "images", "patients", "blank", "views", "sex", "age",
            "classes", "intensity", "features",
        }  # fmt: skip

    def test_patients_that_are_unknown_are_not_counted(self, large_census):
        unknown = dataclasses.replace(large_census(), patients_known=False)
        assert share(unknown, 10, None, None).patients is None

    def test_a_site_of_few_patients_shares_nothing(self, census):
        with pytest.raises(CensusError, match="here shares nothing: it has 5 patients"):
            share(census, 10, None, None)

    def test_a_count_of_one_is_never_shared(self, census):
        with pytest.raises(CensusError, match="needs to be 2 or more; got 1"):
            share(census, 1, None, None)

    def test_moments_of_few_images_stay_at_the_site(self, large_census):
        few, enough = (Moments(n, np.zeros(PIXELS), np.eye(PIXELS)) for n in (PIXELS - 1, PIXELS))
        assert share(large_census(), 10, None, few).features is None
        assert share(large_census(), 10, None, enough).features is enough


class TestOutcomes:
    def test_follow_from_labels_as_read_and_the_policy(self, census, large_census):
        shared = share(large_census(1000), 10, None, None)
        for name, entry in census.classes.items():
            assert outcomes(shared, name) == {k: 1000 * entry.labels[k] for k in OUTCOMES}

    def test_withheld_labels_that_become_the_same_are_the_rest(self, shared):
        edema = with_labels(shared, 600, positive=50, negative=None, uncertain=None)
        assert outcomes(edema, "Edema") == {
            "positive": 50, "negative": 550, "soft": 0, "not labelled": 0,
        }  # fmt: skip
        assert prevalence(edema, "Edema") == 50 / 600

    def test_withheld_labels_that_become_different_things_stay_withheld(self, shared):
        rare = with_labels(shared, 600, positive=None, negative=None)
        assert outcomes(rare, "Edema") == {
            "positive": None, "negative": None, "soft": 0, "not labelled": 0,
        }  # fmt: skip
        assert prevalence(rare, "Edema") is None

    @pytest.mark.parametrize(
        ("policy", "becomes"),
        [
            ("zeros", "negative"),
            ("ones", "positive"),
            ("ignore", "not labelled"),
            ("smooth-zeros", "soft"),
            ("smooth-ones", "soft"),
        ],
    )
    def test_an_uncertain_label_becomes_what_the_policy_says(self, shared, policy, becomes):
        edema = with_labels(shared, 60, policy=policy, uncertain=60)
        assert outcomes(edema, "Edema")[becomes] == 60

    def test_prevalence_is_of_the_labelled_images(self, shared):
        half = with_labels(shared, 100, positive=10, negative=10, not_labelled=80)
        assert prevalence(half, "Edema") == 0.5

    def test_blank_labels_become_what_the_site_decided(self, shared):
        edema = with_labels(shared, 100, blank="not labelled", positive=100)
        edema.classes["Edema"].read.update(positive=20, blank=80)
        assert outcomes(edema, "Edema")["not labelled"] == 80


def test_what_is_written_is_read_again(shared, tmp_path):
    path = tmp_path / "here.json"
    path.write_text(json.dumps(shared.to_json()))
    again = read_shared(path)
    assert again.to_json() == shared.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(format=2), "needs a shared census, with 'format': 1"),
        (lambda v: v.pop("site"), "needs key 'site'; has .*images"),
        (lambda v: v.update(images=-1), "key 'images' needs a number of 0 or more; got -1"),
        (lambda v: v["sex"].pop("F"), "key 'sex' needs the cells F, M, unknown"),
        (lambda v: v["classes"].update(Edema=3), "key 'Edema' needs lines 'key: value'; got 3"),
        (lambda v: v["intensity"].pop(), "key 'intensity' needs 32 numbers; got 31"),
        (lambda v: v["features"]["mean"].pop(), r"key 'features' needs shapes \(64,\)"),
    ],
)
def test_another_form_is_refused_by_name(shared, change, message):
    values = json.loads(json.dumps(shared.to_json()))
    change(values)
    with pytest.raises(CensusError, match=message):
        from_json(values)


def test_a_file_that_is_no_json_is_named(tmp_path):
    path = tmp_path / "here.json"
    path.write_text("{")
    with pytest.raises(CensusError, match=r"here\.json cannot be read as a shared census"):
        read_shared(path)
