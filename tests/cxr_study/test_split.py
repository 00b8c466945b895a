import numpy as np
import pandas as pd
import pytest

from cxr_study import split
from cxr_study.csv_columns import TableError


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
        counts = split.split_patients(table(HALF), seed=0)["split"].value_counts()
        assert counts.to_dict() == {"train": 140, "validation": 20, "test": 40}

    def test_every_patient_stands_once_however_many_images_it_has(self):
        frame = split.split_patients(table([1, 0] * 20, images=3), seed=0)
        assert frame["patient"].tolist() == sorted(set(table([1, 0] * 20)["patient"]))

    @pytest.mark.parametrize("positives", [10, 50, 133])
    def test_every_split_has_its_share_of_positive_patients(self, positives):
        rows = table([1] * positives + [0] * (200 - positives))
        where = rows["patient"].map(
            split.split_patients(rows, seed=3).set_index("patient")["split"]
        )
        share = rows.groupby(where)["Mass"].sum() / positives
        for name, fraction in zip(split.SPLITS, (0.7, 0.1, 0.2), strict=True):
            assert abs(share[name] - fraction) <= 1 / positives

    def test_one_positive_image_makes_a_positive_patient(self):
        # Patients 0-4 are positive by one image of two, 5-9 by none: each split has its half.
        rows = table([1] * 5 + [0] * 5, images=2)
        rows.loc[1:9:2, "Mass"] = np.nan
        rows["Edema"] = 0.0
        where = split.split_patients(rows, seed=0, fractions=(0.6, 0.2, 0.2)).set_index("patient")
        positive = where.loc["p000":"p004", "split"].value_counts()
        assert positive.to_dict() == {"train": 3, "validation": 1, "test": 1}

    def test_row_order_does_not_matter_and_the_seed_does(self):
        rows = table(HALF)
        first = split.split_patients(rows, seed=0)
        pd.testing.assert_frame_equal(first, split.split_patients(rows[::-1], seed=0))
        assert not first.equals(split.split_patients(rows, seed=1))

    def test_too_few_patients_are_refused(self):
        with pytest.raises(split.SplitError, match="'test' got none of the 2 patients"):
            split.split_patients(table([1, 0]), seed=0)

    @pytest.mark.parametrize("fractions", [(0.7, 0.3), (0.7, 0.1, 0.1), (1.1, -0.3, 0.2)])
    def test_fractions_that_are_no_cut_are_refused(self, fractions):
        with pytest.raises(ValueError, match="three positive numbers that sum to 1"):
            split.split_patients(table(HALF), seed=0, fractions=fractions)


class TestSplitSites:
    def test_sites_are_disjoint_equal_and_stratified(self):
        rows = table(HALF, images=2)
        sites = split.split_sites(rows, 4, seed=0)
        assert [site["patient"].nunique() for site in sites] == [50] * 4
        assert [site["Mass"].sum() for site in sites] == [50] * 4
        assert sorted(pd.concat(sites)["image"]) == sorted(rows["image"])

    def test_fewer_patients_than_sites_are_refused(self):
        with pytest.raises(split.SplitError, match="3 sites need 3 patients; got 2"):
            split.split_sites(table([1, 0]), 3, seed=0)


class TestSplitFile:
    def test_what_is_written_is_read(self, tmp_path):
        frame = split.split_patients(table(HALF), seed=0)
        split.write_split(frame, tmp_path / "split.csv")
        assert split.read_split(tmp_path / "split.csv").to_dict() == frame.to_dict()

    def test_a_patient_number_stays_text(self, tmp_path):
        (tmp_path / "split.csv").write_text("patient,split\n007,test\n")
        assert split.read_split(tmp_path / "split.csv")["patient"].tolist() == ["007"]

    def test_an_unknown_split_is_refused_by_its_line(self, tmp_path):
        (tmp_path / "split.csv").write_text("patient,split\n1,test\n2,val\n")
        with pytest.raises(TableError, match=r"line 3, column 'split': needs train, .* got 'val'"):
            split.read_split(tmp_path / "split.csv")


class TestCheck:
    def frame(self, **splits):
        return pd.DataFrame({"patient": list(splits), "split": list(splits.values())})

    def test_a_split_that_knows_more_patients_is_fine(self):
        split.check(table([1]), self.frame(p000="train", p001="test"))

    def test_a_patient_without_split_is_refused(self):
        with pytest.raises(split.SplitError, match=r"2 of 3 are not .*: p001, p002\. "):
            split.check(table([1, 1, 1]), self.frame(p000="train"))

    def test_a_patient_in_two_splits_is_refused(self):
        frame = pd.concat([self.frame(p000="train"), self.frame(p000="test")])
        with pytest.raises(
            split.SplitError, match=r"1 stand in the split file more than once: p000"
        ):
            split.check(table([1]), frame)
