import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_studies.partition.partition import split_sites
from cxr_study.common.errors import InputError
from cxr_study.data.sites import patient_split
from cxr_study.data.sites.patient_split import split_patients, stratify, without_positives


def table(positive, images=1):
    """One patient per entry, with this label of Mass and so many images."""
    patients = [f"p{number:03}" for number in range(len(positive))]
    names = [f"{p}_{i}.png" for p in patients for i in range(images)]
    rows = {"image": names, "patient": np.repeat(patients, images), "view": "", "sex": ""}
    mass = np.repeat(np.array(positive, dtype=float), images)
    return pd.DataFrame({**rows, "age": np.nan, "Mass": mass})


ROWS = table([1] * 100 + [0] * 100)
WHOLE = split_patients(ROWS, seed=0)


class TestSplitPatients:
    @pytest.mark.parametrize("positives", [10, 50, 133])
    def test_patients_are_cut_seventy_ten_twenty_with_positives_in_proportion(self, positives):
        rows = table([1] * positives + [0] * (200 - positives), images=2)
        rows.loc[1::2, "Mass"] = np.nan  # one positive image makes a positive patient
        rows["Edema"] = 0.0
        split = split_patients(rows, seed=3)
        counts = split["split"].value_counts().to_dict()
        assert counts == {"train": 140, "validation": 20, "test": 40}
        positive = split["split"][split["patient"] < f"p{positives:03}"].value_counts()
        for name, fraction in zip(patient_split.SPLITS, (0.7, 0.1, 0.2), strict=True):
            assert abs(positive[name] / positives - fraction) <= 1 / positives

    def test_row_order_does_not_matter_the_seed_does_and_every_split_needs_a_patient(self):
        pd.testing.assert_frame_equal(WHOLE, split_patients(ROWS[::-1], seed=0))
        assert not WHOLE.equals(split_patients(ROWS, seed=1))
        with pytest.raises(InputError, match="'test' has none of the 2 patients"):
            split_patients(table([1, 0]), seed=0)


NEAR = table([1] * 900).loc[np.repeat(np.arange(900), np.tile([1, 1, 2], 300))]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("heavy", "off"), [([20, 20, 17], 0.15), ([12] * 5, 0.06), ([8] * 9, 0.02)]
)
def test_each_split_has_its_share_of_the_images_and_its_classes(seed, heavy, off):
    rows = table(np.arange(32) % 2)
    rows = rows.loc[np.repeat(np.arange(32), [*heavy, *[2] * (32 - len(heavy))])]
    rows["Hernia"] = (rows["patient"] < "p003").astype(float)  # one of the three in each split
    split = split_patients(rows, seed=seed)
    assert not without_positives(split, rows, ["Mass", "Hernia"])
    images = rows["patient"].map(split.set_index("patient")["split"]).value_counts(normalize=True)
    assert (abs(images - split["split"].value_counts(normalize=True)) <= off).all()


def test_no_draw_is_taken_that_lacks_a_class_which_another_has():
    rng = np.random.default_rng(1009)
    rows = table([0] * 12).loc[np.repeat(np.arange(12), rng.choice([1, 2, 12], 12))]
    for name in "abcd":
        rows[name] = (rng.random(12) < 0.35)[rows.index].astype(float)
    assert not without_positives(split_patients(rows, seed=0), rows, list("abcd"))


@pytest.mark.parametrize("rows", [ROWS, table([1, 0] * 20, images=3), NEAR])
def test_where_all_have_equally_many_or_shares_are_near_nothing_changes(rows):
    assert split_patients(rows, seed=2).equals(split_patients(rows, seed=2, draws=1))


class TestRareClasses:
    @pytest.mark.parametrize("seed", range(10))
    def test_a_small_site_has_its_classes_in_a_validation_split_of_two(self, seed):
        rows = table([1] * 4 + [0] * 14)  # in proportion, none of the two would be positive
        rows["Edema"] = np.where(rows["patient"] >= "p014", 1.0, 0.0)
        split = split_patients(rows, seed=seed)
        assert split["split"].value_counts().to_dict() == {"train": 13, "validation": 1, "test": 4}
        rows.loc[rows["patient"] == "p003", "Edema"] = 1.0  # one has both
        assert not without_positives(split_patients(rows, seed=seed), rows, ["Mass", "Edema"])

    def test_splits_without_a_patient_are_named_with_the_number_there_are(self):
        rows = table([1] * 100 + [0] * 100, images=2)
        rows["Hernia"] = np.where(rows["patient"].isin(["p003", "p150", "p199"]), 1.0, 0.0)
        rows["Edema"] = np.where(rows["patient"] == "p150", 1.0, -1.0)
        split = split_patients(rows, seed=0)
        (line,) = without_positives(split, rows, ["Mass", "Hernia", "Edema"])
        words = r"Edema: no positive patient in \w+ and \w+ \(1 in all; 3 are needed\)"
        assert re.fullmatch(words, line)
        none = split.assign(split=split["split"].replace("test", "train"))
        words = "Mass: no positive patient in test (100 in all)"
        assert without_positives(none, rows, ["Mass"]) == [words, patient_split.REMEDY]


def parts(rows, test):
    return {image: "test" if image[:4] in test else "train_val" for image in rows["image"]}


def test_the_test_list_is_the_test_split_and_an_eighth_of_the_rest_validates():
    rows = table([1] * 100 + [0] * 100, images=2)
    test = {f"p{number:03}" for number in range(0, 200, 5)}
    frame = patient_split.split_by_lists(rows, parts(rows, test), seed=0)
    assert set(frame["patient"][frame["split"] == "test"]) == test
    assert frame["split"].value_counts().to_dict() == {"train": 140, "validation": 20, "test": 40}


@pytest.mark.parametrize(("changes", "message"), [
    ({"p000_0.png": None, "p000_1.png": None}, r"2 of 4 are in none: p000_0\.png, p000_1\.png"),
    ({"p001_0.png": "train_val"}, "those of 1 patients are in both: p001"),
])  # fmt: skip
def test_lists_that_miss_an_image_or_tear_a_patient_are_refused(changes, message):
    rows = table([1, 0], images=2)
    with pytest.raises(InputError, match=message):
        patient_split.split_by_lists(rows, parts(rows, {"p001"}) | changes, seed=0)


def test_each_patient_is_tested_in_one_fold_and_the_seed_decides_who_validates():
    rows = table([1] * 15 + [0] * 25)
    fold = patient_split.split_fold
    one, other = ([fold(rows, number, 5, seed=seed) for number in range(5)] for seed in (0, 1))
    for splits in (one, other):
        tested = [set(each.loc[each["split"] == "test", "patient"]) for each in splits]
        assert set.union(*tested) == set(rows["patient"]) and [len(t) for t in tested] == [8] * 5
        for each in splits:
            patient_split.check(rows, each)
            counts = each["split"].value_counts().to_dict()
            assert counts == {"train": 28, "validation": 4, "test": 8}
    for first, second in zip(one, other, strict=True):
        is_test = first["split"] == "test"
        assert (is_test == (second["split"] == "test")).all() and not first.equals(second)


def test_thinning_leaves_out_training_patients_alone_of_both_strata_and_all_sites_alike():
    thin = patient_split.subsample_training
    half, tenth = (thin(WHOLE, ROWS, share, seed=0) for share in (0.5, 0.1))
    counts = half["split"].value_counts().to_dict()
    assert counts == {"train": 70, "unused": 70, "test": 40, "validation": 20}
    assert (half["split"] == WHOLE["split"])[WHOLE["split"] != "train"].all()
    kept, fewer = (set(frame["patient"][frame["split"] == "train"]) for frame in (half, tenth))
    assert sum(patient < "p100" for patient in kept) == 35 and fewer < kept
    thinned = thin(split_sites(ROWS, ["a", "b"], seed=0), ROWS, 0.1, seed=0)
    assert thinned[thinned["split"] == "train"]["site"].value_counts().to_dict() == {"a": 7, "b": 7}


def test_every_patient_needs_one_split_and_more_patients_are_fine():
    frame = pd.DataFrame({"patient": ["p000", "p009"], "split": ["train", "test"]})
    patient_split.check(table([1]), frame)
    with pytest.raises(InputError, match=r"2 of 3 have none: p001, p002\. "):
        patient_split.check(table([1, 1, 1]), frame)
    with pytest.raises(InputError, match=r"1 have more than one line: p000"):
        patient_split.check(table([1]), pd.concat([frame, frame[:1]]))


def random_classes(patients, shares, seed):
    return np.random.default_rng(seed).random((patients, len(shares))) < shares


@given(st.integers(0, 50), st.lists(st.sampled_from([0.02, 0.1, 0.5]), min_size=1, max_size=6))
def test_parts_have_their_sizes_and_every_patient_is_in_one(seed, shares):
    present = random_classes(100, shares, seed)
    part = stratify(present, [70, 0, 10, 20], np.random.default_rng(seed))
    assert np.bincount(part, minlength=4).tolist() == [70, 0, 10, 20]


@given(st.integers(0, 200))
def test_a_class_with_as_many_patients_as_parts_has_one_in_each(seed):
    present = random_classes(264, [0.01, 0.012, 0.03, 0.1, 0.3], seed)
    part = stratify(present, [185, 26, 53], np.random.default_rng(seed))
    for name in np.flatnonzero(present.sum(axis=0) >= 3):
        assert set(part[present[:, name]]) == {0, 1, 2}


def test_patients_that_share_two_rare_classes_do_not_take_one_from_a_part():
    present = np.zeros((30, 2), bool)
    present[[0, 1, 2], 0] = present[[0, 1, 3], 1] = True  # two have both
    for seed in range(20):
        part = stratify(present, [24, 3, 3], np.random.default_rng(seed))
        for name in (0, 1):
            assert set(part[present[:, name]]) == {0, 1, 2}


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
def test_parts_have_equally_much_of_every_class(share):
    present = random_classes(3000, [share, share, 0.3], 0)
    part = stratify(present, [2100, 300, 600], np.random.default_rng(0))
    for number, fraction in enumerate((0.7, 0.1, 0.2)):
        wanted = present.sum(axis=0) * fraction
        assert np.all(abs(present[part == number].sum(axis=0) - wanted) <= 0.02 * wanted + 1)


def test_lone_patients_of_a_class_are_at_either_part():
    present = np.zeros((40, 1), bool)
    present[0] = True
    parts = {stratify(present, [20, 20], np.random.default_rng(seed))[0] for seed in range(20)}
    assert parts == {0, 1}
