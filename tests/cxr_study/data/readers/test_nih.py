from pathlib import Path

import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.vocabulary import NIH_CLASSES
from cxr_study.data.readers import nih

V2020 = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)
SIZE = "2682,2749,0.143,0.143"
METADATA = Path(__file__).parents[4].parent / "shared/data/nih-metadata"


@pytest.fixture
def read(tmp_path):
    def read_rows(*rows, header=V2020):
        path = tmp_path / "Data_Entry.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return nih.read(path)

    return read_rows


def row(image="00000001_000.png", findings="Mass", patient="1", age="57", sex="F", view="PA"):
    return f"{image},{findings},0,{patient},{age},{sex},{view},{SIZE}"


def present(table):
    return [[name for name in NIH_CLASSES if labels[name] == 1] for _, labels in table.iterrows()]


def test_a_v2020_row_becomes_a_row_of_the_label_table(read):
    table = read(row(findings="Cardiomegaly|Emphysema", sex="M", view="AP"))
    assert list(table) == ["image", "patient", "view", "sex", "age", *NIH_CLASSES]
    assert table.iloc[0, :5].tolist() == ["00000001_000.png", "1", "AP", "M", 57.0]
    assert present(table) == [["Cardiomegaly", "Emphysema"]]


def test_no_finding_makes_all_fourteen_labels_negative(read):
    labels = read(row(findings="No Finding"))[list(NIH_CLASSES)]
    assert (labels == 0).all(axis=None)


def test_findings_have_their_canonical_names(read):
    assert present(read(row(findings="Effusion|Pleural_Thickening|Infiltrate"))) == [
        ["Infiltration", "Pleural Effusion", "Pleural Thickening"]
    ]


def test_the_trailing_comma_of_2017_is_one_more_column_and_shifts_none(read):
    table = read(row() + ",", header=V2020 + ",")
    assert table.loc[0, ["image", "patient"]].tolist() == ["00000001_000.png", "1"]


def test_the_commas_within_the_brackets_of_the_header_shift_no_column(read):
    header = V2020.split(",")
    table = read(",".join(row().split(",")[::-1]), header=",".join(header[::-1]))
    assert table.equals(read(row()))


@pytest.mark.parametrize("row_", [row(findings="Mass,Nodule"), row() + ","])
def test_a_row_longer_than_the_header_is_refused(read, row_):
    with pytest.raises(TableError, match=r"Data_Entry\.csv, line 3: the line has 12 cells"):
        read(row("a.png"), row_)


@pytest.mark.parametrize(("text", "patient"), [("00000013", "13"), ("13", "13"), ("0", "0")])
def test_a_patient_is_the_same_with_and_without_leading_zeros(read, text, patient):
    assert read(row(patient=text))["patient"].tolist() == [patient]


def test_patient_sex_is_patient_gender(read):
    assert read(row(sex="F"), header=V2020.replace("Gender", "Sex"))["sex"].tolist() == ["F"]


@pytest.mark.parametrize(
    ("text", "years"), [("057", 57), ("058Y", 58), ("006M", 0.5), ("073D", 0.2), ("120", 120)]
)
def test_age_is_in_years_whatever_its_unit(read, text, years):
    assert read(row(age=text))["age"].tolist() == [years]


@pytest.mark.parametrize("text", ["414", "148Y", ""])
def test_an_absurd_or_blank_age_is_unknown(read, text):
    assert read(row(age=text))["age"].isna().all()


def test_unknown_sex_is_blank(read):
    assert read(row(sex=""))["sex"].tolist() == [""]


def test_a_view_that_is_neither_pa_nor_ap_is_frontal_as_all_of_nih(read):
    assert read(row(view="LL"))["view"].tolist() == ["frontal"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row("b.png", findings="Masss"), "column 'Finding Labels': 'Masss' .*nearest known: Mass"),
        (row("b.png", findings="Lung Opacity"), "'Lung Opacity' is not an NIH finding"),
        (row("b.png", findings="No Finding|Mass"), "'No Finding' is not an NIH finding"),
        (row("b.png", findings=""), "column 'Finding Labels': '' is not an NIH finding"),
        (row("b.png", patient=""), "column 'Patient ID': needs a number, digits only; got ''"),
        (row("b.png", patient="1.0"), "column 'Patient ID': needs a number, .* got '1.0'"),
        (row(""), "column 'Image Index': the cell is blank"),
        (row("b.png", age="old"), "column 'Patient Age': 'old' is not an age"),
        (row("a.png"), "column 'Image Index': 'a.png' stands in line 2 already"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    with pytest.raises(TableError, match=rf"Data_Entry\.csv, line 3, .*{message}"):
        read(row("a.png"), bad)


def test_a_missing_column_is_refused_with_both_its_spellings(read):
    with pytest.raises(TableError, match="needs a column 'Patient Gender' or 'Patient Sex'"):
        read(row(), header=V2020.replace("Patient Gender", "Gender of it"))


@pytest.fixture
def lists(tmp_path):
    def read_lists(train_val, test):
        for name, text in (("train_val_list.txt", train_val), ("test_list.txt", test)):
            (tmp_path / name).write_bytes(text.encode())
        return nih.official_lists(tmp_path / "train_val_list.txt", tmp_path / "test_list.txt")

    return read_lists


@pytest.mark.parametrize(("start", "end"), [("", "\n"), ("", "\r\n"), ("\ufeff", "\n")])
def test_official_lists_have_a_name_per_line_and_no_header(lists, start, end):
    table = lists(start + end.join(["b.png", "a.png", ""]), "c.png")
    assert table.to_dict("list") == {
        "image": ["b.png", "a.png", "c.png"],
        "part": ["train_val", "train_val", "test"],
    }


@pytest.mark.parametrize(
    ("train_val", "test", "message"),
    [
        ("a\nb\na\n", "c\n", r"train_val_list\.txt, line 3: 'a' stands in .*list\.txt, line 1"),
        ("a\n", "c\na\n", r"test_list\.txt, line 2: 'a' stands in .*train_val_list\.txt, line 1"),
        ("a\n", "", r"test_list\.txt is empty"),
        ("a\n\nb\n", "c\n", r"train_val_list\.txt, line 2: the line is blank"),
    ],
)
def test_lists_that_are_no_partition_are_refused(lists, train_val, test, message):
    with pytest.raises(TableError, match=message):
        lists(train_val, test)


def test_a_list_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(TableError, match=r"none\.txt cannot be read"):
        nih.official_lists(tmp_path / "none.txt", tmp_path / "none.txt")


@pytest.mark.data
@pytest.mark.skipif(not METADATA.is_dir(), reason=f"no NIH metadata in {METADATA}")
def test_the_official_table_has_the_official_counts():
    table = nih.read(METADATA / "Data_Entry_2017_v2020.csv.gz")
    assert (len(table), table["patient"].nunique()) == (112_120, 30_805)
    assert table["view"].value_counts().to_dict() == {"PA": 67_310, "AP": 44_810}
    assert (table["age"].min(), table["age"].max()) == (0, 95)
    assert (table[list(NIH_CLASSES)].sum(axis=1) == 0).sum() == 60_361
    assert table[list(NIH_CLASSES)].sum().to_dict() == {
        "Infiltration": 19_894,
        "Pleural Effusion": 13_317,
        "Atelectasis": 11_559,
        "Nodule": 6_331,
        "Mass": 5_782,
        "Pneumothorax": 5_302,
        "Consolidation": 4_667,
        "Pleural Thickening": 3_385,
        "Cardiomegaly": 2_776,
        "Emphysema": 2_516,
        "Edema": 2_303,
        "Fibrosis": 1_686,
        "Pneumonia": 1_431,
        "Hernia": 227,
    }


@pytest.mark.data
@pytest.mark.skipif(not METADATA.is_dir(), reason=f"no NIH metadata in {METADATA}")
def test_the_official_lists_part_the_official_table_by_patient():
    table = nih.read(METADATA / "Data_Entry_2017_v2020.csv.gz").set_index("image")
    parts = nih.official_lists(METADATA / "train_val_list.txt", METADATA / "test_list.txt")
    assert parts["part"].value_counts().to_dict() == {"train_val": 86_524, "test": 25_596}
    assert sorted(parts["image"]) == sorted(table.index)
    part = parts.set_index("image")["part"]
    assert (table["patient"].groupby(part).nunique().sum()) == 30_805
