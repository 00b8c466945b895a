import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_study.data.sites import patient_split


def table(positive, images=1):
    """One patient per entry, with this label of Mass and so many images."""
    patients = [f"p{number:03}" for number in range(len(positive))]
    return pd.DataFrame(
        {
            "image": [f"{p}_{i}.png" for p in patients for i in range(images)],
            "patient": np.repeat(patients, images),
            "view": "",
            "sex": "",
            "age": np.nan,
            "Mass": np.repeat(np.array(positive, dtype=float), images),
        }
    )


HALF = [1] * 100 + [0] * 100


class TestSplitPatients:
    def test_patients_are_cut_seventy_ten_twenty(self):
        counts = patient_split.split_patients(table(HALF), seed=0)["split"].value_counts()
        assert counts.to_dict() == {"train": 140, "validation": 20, "test": 40}

    @pytest.mark.parametrize("positives", [10, 50, 133])
    def test_every_split_has_its_share_of_positive_patients(self, positives):
        rows = table([1] * positives + [0] * (200 - positives))
        where = rows["patient"].map(
            patient_split.split_patients(rows, seed=3).set_index("patient")["split"]
        )
        share = rows.groupby(where)["Mass"].sum() / positives
        for name, fraction in zip(patient_split.SPLITS, (0.7, 0.1, 0.2), strict=True):
            assert abs(share[name] - fraction) <= 1 / positives

    def test_one_positive_image_makes_a_positive_patient(self):
        # Patients 0-4 are positive by one image of two, 5-9 by none: each split has its half.
        rows = table([1] * 5 + [0] * 5, images=2)
        rows.loc[1:9:2, "Mass"] = np.nan
        rows["Edema"] = 0.0
        where = patient_split.split_patients(rows, seed=0, fractions=(0.6, 0.2, 0.2)).set_index(
            "patient"
        )
        positive = where.loc["p000":"p004", "split"].value_counts()
        assert positive.to_dict() == {"train": 3, "validation": 1, "test": 1}

    def test_row_order_does_not_matter_and_the_seed_does(self):
        rows = table(HALF)
        first = patient_split.split_patients(rows, seed=0)
        pd.testing.assert_frame_equal(first, patient_split.split_patients(rows[::-1], seed=0))
        assert not first.equals(patient_split.split_patients(rows, seed=1))

    def test_too_few_patients_are_refused(self):
        with pytest.raises(patient_split.SplitError, match="'test' got none of the 2 patients"):
            patient_split.split_patients(table([1, 0]), seed=0)

    @pytest.mark.parametrize("fractions", [(0.7, 0.3), (0.7, 0.1, 0.1), (1.1, -0.3, 0.2)])
    def test_fractions_that_are_no_cut_are_refused(self, fractions):
        with pytest.raises(ValueError, match="three positive numbers that sum to 1"):
            patient_split.split_patients(table(HALF), seed=0, fractions=fractions)


class TestSplitSites:
    @given(st.integers(1, 10), st.integers(0, 150), st.integers(0, 3))
    def test_every_number_of_sites_has_the_same_splits_and_cuts_each_stratum_alike(
        self, sites, positives, seed
    ):
        rows = table([1] * positives + [0] * (150 - positives), images=2)
        names = [f"site-{number}" for number in range(sites)]
        frame = patient_split.split_sites(rows, names, seed=seed)
        pd.testing.assert_frame_equal(
            frame, patient_split.split_sites(rows[::-1], names, seed=seed)
        )
        whole = patient_split.split_patients(rows, seed=seed)
        pd.testing.assert_frame_equal(frame[["patient", "split"]], whole)
        positive = frame["patient"] < f"p{positives:03}"
        of_stratum = pd.crosstab([frame["split"], positive], frame["site"])
        of_split = of_stratum.groupby("split").sum()
        for counts in (of_stratum, of_split, of_split.sum().to_frame().T):
            counts = counts.reindex(columns=names, fill_value=0)
            assert (counts.max(axis=1) - counts.min(axis=1)).max() <= 1

    def test_neighbours_in_the_table_are_at_either_site(self):
        frame = patient_split.split_sites(table([0] * 200), ["a", "b"], seed=0)
        training = frame["site"][frame["split"] == "train"]
        assert 20 < (training[:70] == "a").sum() < 50
        assert training[::2].nunique() == 2

    def test_fewer_patients_than_sites_are_refused_with_the_split(self):
        with pytest.raises(
            patient_split.SplitError, match="'validation' has 2 of the 20 patients for 3 s"
        ):
            patient_split.split_sites(table([1, 0] * 10), ["a", "b", "c"], seed=0)


class TestSplitByLists:
    def parts(self, rows, test):
        return {image: "test" if image[:4] in test else "train_val" for image in rows["image"]}

    def test_the_test_list_is_the_test_split_and_an_eighth_of_the_rest_validates(self):
        rows = table(HALF, images=2)
        test = {f"p{number:03}" for number in range(0, 200, 5)}
        frame = patient_split.split_by_lists(rows, self.parts(rows, test), seed=0)
        assert set(frame["patient"][frame["split"] == "test"]) == test
        assert frame["split"].value_counts().to_dict() == {
            "train": 140, "validation": 20, "test": 40,
        }  # fmt: skip

    def test_an_image_in_no_list_is_refused(self):
        with pytest.raises(
            patient_split.SplitError, match=r"2 of 2 are in none: p000_0\.png, p001_0\.png"
        ):
            patient_split.split_by_lists(table([1, 0]), {}, seed=0)

    def test_a_patient_in_both_lists_is_refused(self):
        rows = table([1, 0], images=2)
        parts = self.parts(rows, {"p001"}) | {"p001_0.png": "train_val"}
        with pytest.raises(patient_split.SplitError, match="those of 1 patients are in both: p001"):
            patient_split.split_by_lists(rows, parts, seed=0)


class TestThin:
    def test_training_patients_alone_are_left_out_and_both_strata_alike(self):
        rows = table(HALF)
        whole = patient_split.split_patients(rows, seed=0)
        thinned = patient_split.thin(whole, rows, 0.5, seed=0)
        assert thinned["split"].value_counts().to_dict() == {
            "train": 70, "unused": 70, "test": 40, "validation": 20,
        }  # fmt: skip
        assert (thinned["split"] == whole["split"])[whole["split"] != "train"].all()
        kept = thinned["patient"][thinned["split"] == "train"]
        assert (kept < "p100").sum() == 35

    def test_a_smaller_share_is_a_part_of_a_larger_one(self):
        rows = table(HALF)
        whole = patient_split.split_patients(rows, seed=0)
        half, tenth = (
            set(thin["patient"][thin["split"] == "train"])
            for thin in (patient_split.thin(whole, rows, share, seed=0) for share in (0.5, 0.1))
        )
        assert tenth < half

    def test_every_site_is_thinned_alike(self):
        rows = table(HALF)
        cut = patient_split.split_sites(rows, ["a", "b"], seed=0)
        thinned = patient_split.thin(cut, rows, 0.1, seed=0)
        left = thinned[thinned["split"] == "train"]["site"].value_counts().to_dict()
        assert left == {"a": 7, "b": 7}

    @pytest.mark.parametrize("share", [0, 1.1])
    def test_a_share_that_is_none_is_refused(self, share):
        with pytest.raises(ValueError, match="above 0, at most 1"):
            patient_split.thin(pd.DataFrame(), table([1]), share, seed=0)


class TestCheck:
    def frame(self, **splits):
        return pd.DataFrame({"patient": list(splits), "split": list(splits.values())})

    def test_a_split_that_knows_more_patients_is_fine(self):
        patient_split.check(table([1]), self.frame(p000="train", p001="test"))

    def test_a_patient_without_split_is_refused(self):
        with pytest.raises(patient_split.SplitError, match=r"2 of 3 have none: p001, p002\. "):
            patient_split.check(table([1, 1, 1]), self.frame(p000="train"))

    def test_a_patient_in_two_splits_is_refused(self):
        frame = pd.concat([self.frame(p000="train"), self.frame(p000="test")])
        with pytest.raises(patient_split.SplitError, match=r"1 stand here more than once: p000"):
            patient_split.check(table([1]), frame)
