from pathlib import Path

import pytest

from cxr_study.csv_columns import TableError
from cxr_study.readers import nih
from cxr_study.vocabulary import NIH_CLASSES

V2020 = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)
SIZE = "2682,2749,0.143,0.143"
METADATA = Path(__file__).parents[3].parent / "shared/data/nih-metadata"


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


@pytest.mark.parametrize("header", [V2020 + ",", V2020])
def test_the_trailing_comma_of_2017_shifts_no_column(read, header):
    table = read(row() + ",", header=header)
    assert table.loc[0, ["image", "patient"]].tolist() == ["00000001_000.png", "1"]


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


def test_unknown_sex_and_view_are_blank(read):
    assert read(row(sex="", view="LL")).loc[0, ["sex", "view"]].tolist() == ["", ""]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row("b.png", findings="Masss"), "column 'Finding Labels': 'Masss' .*nearest known: Mass"),
        (row("b.png", findings="Lung Opacity"), "'Lung Opacity' is not an NIH finding"),
        (row("b.png", findings="No Finding|Mass"), "'No Finding' is not an NIH finding"),
        (row("b.png", findings=""), "column 'Finding Labels': '' is not an NIH finding"),
        (row("b.png", patient=""), "column 'Patient ID': the cell is blank"),
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
