import pandas as pd
import pytest

from cxr_studies.partition.partition import split_sites
from cxr_study.common.errors import InputError
from cxr_study.data.sites.patient_split import split_patients
from cxr_study.data.sites.split_file import apply_split, fingerprint, read_split, write_split

TABLE = pd.DataFrame({
    "image": [f"{i}.png" for i in range(40)], "patient": [f"{i // 2:03}" for i in range(40)],
    "view": "PA", "sex": "", "age": 50.0, "Mass": [float(i % 4 == 0) for i in range(40)],
})  # fmt: skip
SPLIT = split_patients(TABLE, seed=3)


@pytest.fixture
def csv(tmp_path):
    """A split file of the table."""
    path = tmp_path / "split.csv"
    write_split(SPLIT, TABLE, path, scheme="70/10/20", seed=3)
    return path


def test_what_is_written_is_read_with_scheme_seed_input_and_counts(csv, tmp_path):
    read = read_split(csv)
    numbers = {"train": (14, 28, 7), "validation": (2, 4, 1), "test": (4, 8, 2)}
    names = ("patients", "images", "positive patients")
    counts = {split: dict(zip(names, of, strict=True)) for split, of in numbers.items()}
    about = {"scheme": "70/10/20", "seed": 3, "input": fingerprint(TABLE)}
    assert read.header == {**about, "counts": counts}
    pd.testing.assert_frame_equal(read.assignment.astype(object), SPLIT.astype(object))
    turned = TABLE[::-1].reset_index(drop=True)  # the order of the rows does not matter
    again = tmp_path / "again.csv"
    write_split(split_patients(turned, seed=3), turned, again, scheme="70/10/20", seed=3)
    assert again.read_bytes() == csv.read_bytes()


def test_a_file_made_by_hand_needs_no_header_but_known_splits(csv):
    csv.write_text("patient,split\n007,test\n")
    read = read_split(csv)
    assert (read.header, read.assignment["patient"].tolist()) == ({}, ["007"])
    csv.write_text("# seed: 0\npatient,split\n1,test\n2,val\n")
    with pytest.raises(InputError, match="line 4, column 'split': needs"):
        read_split(csv)
    for seed in ("[", "2020-99-99", "[" * 5000, "9" * 6000):
        csv.write_text(f"# seed: {seed}\npatient,split\n1,test\n")
        with pytest.raises(InputError, match=r"split\.csv: the header cannot be rea"):
            read_split(csv)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_one_that_a_spreadsheet_has_saved_again_is_read_and_replaced(csv, encoding):
    text, read = csv.read_text(), read_split(csv)
    csv.write_text(text, encoding=encoding)
    assert read_split(csv).header == read.header
    write_split(SPLIT, TABLE, csv, scheme="70/10/20", seed=3)
    assert csv.read_text() == text and (csv.parent / "split.earlier-1.csv").is_file()


def apply(csv, table=TABLE, site="a"):
    return apply_split(read_split(csv), table, site)


def test_every_image_gets_its_patients_split_and_other_labels_are_refused(csv):
    where = SPLIT.set_index("patient")["split"]
    assert apply(csv)["split"].tolist() == [where[p] for p in TABLE["patient"]]
    one_less = TABLE["patient"].replace("000", "001")
    others = {"Mass": 0.0}, {"image": "x" + TABLE["image"]}, {"patient": one_less}
    for changed in (TABLE[:-1], *(TABLE.assign(**other) for other in others)):
        with pytest.raises(InputError, match=r"split\.csv: this split was made from other labels"):
            apply(csv, changed)


def test_a_file_that_was_edited_is_refused(csv):
    whole = csv.read_text()
    csv.write_text(whole.replace(",validation", ",test"))
    with pytest.raises(InputError, match="the counts in the header do not fit the lines"):
        apply(csv)
    csv.write_text(whole + "000,test\n000,train\n")
    with pytest.raises(InputError, match=r"split\.csv: a patient is in one split .* 000"):
        apply(csv)


def test_a_site_sees_its_own_patients_alone(csv):
    named = ["image", "patient"]
    table = pd.concat([TABLE, TABLE.assign(**("x" + TABLE[named]))], ignore_index=True)
    write_split(split_sites(table, ["a", "b"], seed=0), table, csv, scheme="two", seed=0)
    first, second = (apply(csv, table, site) for site in "ab")
    assert len(first) == len(second) == 40
    assert not set(first["patient"]) & set(second["patient"])
    assert read_split(csv).header["counts"]["a"]["train"]["patients"] == 14
    lines = "".join(f"{p},a,train\n" for p in TABLE["patient"].unique())
    for line, site, message in (
        ("003,b,train\n", "a", "one split of one site; 1 have more than one line"),
        ("", "c", "site 'c' has no patient; its sites are a"),
    ):
        csv.write_text("patient,site,split\n" + lines + line)
        with pytest.raises(InputError, match=message):
            apply(csv, site=site)
