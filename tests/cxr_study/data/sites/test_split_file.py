import pandas as pd
import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.sites import split_file
from cxr_study.data.sites.patient_split import SplitError, split_patients, split_sites

TABLE = pd.DataFrame(
    {
        "image": [f"{i}.png" for i in range(40)],
        "patient": [f"{i // 2:03}" for i in range(40)],
        "view": "PA",
        "sex": "",
        "age": 50.0,
        "Mass": [float(i % 4 == 0) for i in range(40)],
    }
)


@pytest.fixture
def csv(tmp_path):
    """A split file of the table."""
    path = tmp_path / "split.csv"
    split_file.write_split(split_patients(TABLE, seed=3), TABLE, path, scheme="70/10/20", seed=3)
    return path


class TestWriting:
    def test_the_header_says_scheme_seed_input_and_counts(self, csv):
        header = split_file.read_split(csv).header
        assert header == {
            "scheme": "70/10/20",
            "seed": 3,
            "input": split_file.fingerprint(TABLE),
            "counts": {
                "train": {"patients": 14, "images": 28, "positive patients": 7},
                "validation": {"patients": 2, "images": 4, "positive patients": 1},
                "test": {"patients": 4, "images": 8, "positive patients": 2},
            },
        }

    def test_the_same_input_and_seed_give_the_same_bytes_whatever_the_order(self, csv, tmp_path):
        again = tmp_path / "again.csv"
        turned = TABLE[::-1].reset_index(drop=True)
        split_file.write_split(
            split_patients(turned, seed=3), turned, again, scheme="70/10/20", seed=3
        )
        assert again.read_bytes() == csv.read_bytes()

    def test_what_is_written_is_read(self, csv):
        expected = split_patients(TABLE, seed=3)
        pd.testing.assert_frame_equal(
            split_file.read_split(csv).assignment.astype(object), expected.astype(object)
        )


class TestReading:
    def test_a_file_made_by_hand_needs_no_header(self, tmp_path):
        (tmp_path / "split.csv").write_text("patient,split\n007,test\n")
        read = split_file.read_split(tmp_path / "split.csv")
        assert read.header == {}
        assert read.assignment["patient"].tolist() == ["007"]

    def test_an_unknown_split_is_refused_by_its_line(self, tmp_path):
        (tmp_path / "split.csv").write_text("# seed: 0\npatient,split\n1,test\n2,val\n")
        with pytest.raises(TableError, match=r"line 4, column 'split': needs train, .* got 'val'"):
            split_file.read_split(tmp_path / "split.csv")

    def test_a_header_that_is_no_yaml_is_refused(self, tmp_path):
        (tmp_path / "split.csv").write_text("# seed: [\npatient,split\n1,test\n")
        with pytest.raises(SplitError, match=r"split\.csv: the header cannot be read"):
            split_file.read_split(tmp_path / "split.csv")


class TestApplying:
    def apply(self, csv, table=TABLE, site="a"):
        return split_file.apply_split(split_file.read_split(csv), table, site)

    def test_every_image_gets_its_patients_split(self, csv):
        where = split_patients(TABLE, seed=3).set_index("patient")["split"]
        assert self.apply(csv)["split"].tolist() == [where[p] for p in TABLE["patient"]]

    @pytest.mark.parametrize(
        "changed",
        [
            TABLE[:-1],
            TABLE.assign(Mass=0.0),
            TABLE.assign(image="x" + TABLE["image"]),
            TABLE.assign(patient=TABLE["patient"].replace("000", "001")),
        ],
        ids=["row removed", "finding removed", "image renamed", "patient changed"],
    )
    def test_other_labels_than_the_split_was_made_from_are_refused(self, csv, changed):
        with pytest.raises(SplitError, match=r"split\.csv: the labels are not those .* made from"):
            self.apply(csv, changed)

    def test_a_patient_moved_by_hand_is_refused(self, csv):
        csv.write_text(csv.read_text().replace(",validation", ",test"))
        with pytest.raises(SplitError, match="the counts in the header are not those of the lines"):
            self.apply(csv)

    def test_a_patient_in_two_splits_is_refused(self, csv):
        csv.write_text(csv.read_text() + "000,test\n000,train\n")
        with pytest.raises(SplitError, match=r"split\.csv: a patient stands in one split .* 000"):
            self.apply(csv)

    def test_a_site_sees_its_own_patients_alone(self, tmp_path):
        cut = split_sites(TABLE, ["a", "b"], seed=0, fractions=(0.6, 0.2, 0.2))
        csv = tmp_path / "split.csv"
        split_file.write_split(cut, TABLE, csv, scheme="two sites", seed=0)
        first, second = self.apply(csv, site="a"), self.apply(csv, site="b")
        assert len(first) == len(second) == 20
        assert not set(first["patient"]) & set(second["patient"])
        assert split_file.read_split(csv).header["counts"]["a"]["train"]["patients"] == 6

    def test_a_patient_at_two_sites_is_refused(self, tmp_path):
        csv = tmp_path / "split.csv"
        lines = [f"{p},a,train\n" for p in TABLE["patient"].unique()]
        csv.write_text("patient,site,split\n" + "".join(lines) + "003,b,train\n")
        with pytest.raises(SplitError, match="one split of one site, once; 1 stand here"):
            self.apply(csv)

    def test_a_site_that_the_file_does_not_know_is_refused(self, tmp_path):
        csv = tmp_path / "split.csv"
        lines = [f"{p},a,train\n" for p in TABLE["patient"].unique()]
        csv.write_text("patient,site,split\n" + "".join(lines))
        with pytest.raises(SplitError, match="site 'c' has no patient; its sites are a"):
            self.apply(csv, site="c")
