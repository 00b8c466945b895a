import csv

import numpy as np
import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.readers import padchest

HEADER = (
    ",ImageID,ImageDir,StudyDate_DICOM,StudyID,PatientID,PatientBirth,PatientSex_DICOM,"
    "ViewPosition_DICOM,Projection,MethodLabel,Report,Labels,Localizations"
).split(",")
TYPICAL = {
    "ImageID": "1_a.png",
    "ImageDir": "7",
    "StudyDate_DICOM": "20140731",
    "PatientID": "839860488694292331637988235681460987",
    "PatientBirth": "1950.0",
    "PatientSex_DICOM": "F",
    "Projection": "PA",
    "MethodLabel": "RNN_model",
    "Report": "sin hallazgos , salvo artefacto",
    "Labels": "['normal']",
}


@pytest.fixture
def read(tmp_path):
    def read_rows(*rows):
        path = tmp_path / "PADCHEST.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, HEADER, restval="")
            writer.writeheader()
            writer.writerows(
                {**TYPICAL, "ImageID": f"{i}_a.png"} | row for i, row in enumerate(rows, 1)
            )
        return padchest.read(path)

    return read_rows


def labels(table):
    return {name: table[name].tolist() for name in table.columns[5:]}


def test_an_official_row_becomes_a_row_of_the_label_table(read):
    table = read({"Labels": "['cardiomegaly', 'goiter']"})
    assert list(table) == ["image", "patient", "view", "sex", "age", "Cardiomegaly", "goiter"]
    assert table.iloc[0, :5].tolist() == ["7/1_a.png", TYPICAL["PatientID"], "PA", "F", 64.0]
    assert (table.dtypes.iloc[5:] == np.float32).all()


def test_every_finding_that_occurs_is_a_class_and_absent_elsewhere(read):
    table = read({"Labels": "['goiter']"}, {"Labels": "['cardiomegaly']"}, {"Labels": "['normal']"})
    assert labels(table) == {"Cardiomegaly": [0, 1, 0], "goiter": [1, 0, 0]}


def test_a_finding_counts_under_its_whole_name_only(read):
    table = read({"Labels": "['subcutaneous emphysema', 'breast mass']"}, {"Labels": "['mass']"})
    assert labels(table) == {
        "Mass": [0, 1],
        "Subcutaneous Emphysema": [1, 0],
        "breast mass": [1, 0],
    }


def test_blanks_around_a_finding_and_its_case_do_not_matter(read):
    assert labels(read({"Labels": "[' Cardiomegaly', 'cardiomegaly ']"})) == {"Cardiomegaly": [1]}


def test_only_names_that_mean_the_same_become_canonical(read):
    table = read({"Labels": "['pulmonary edema', 'infiltrates', 'pulmonary mass', 'NSG tube']"})
    assert list(labels(table)) == ["Edema", "Infiltration", "NSG tube", "pulmonary mass"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "['']", "['exclude']", "[' unchanged', 'suboptimal study']", "['Unchanged']"],
)
def test_a_list_that_says_nothing_about_findings_is_not_labelled(read, text):
    table = read({"Labels": text}, {"Labels": "['goiter']"})
    np.testing.assert_equal(table["goiter"].tolist(), [np.nan, 1])


@pytest.mark.parametrize(
    ("text", "goiter", "mass"),
    [
        ("['normal']", 0, 0),
        ("['normal', 'unchanged']", 0, 0),
        ("['unchanged', 'goiter']", 1, 0),
    ],
)
def test_a_remark_takes_nothing_from_what_else_the_list_says(read, text, goiter, mass):
    table = read({"Labels": text}, {"Labels": "['mass', 'goiter']"})
    assert table.loc[0, ["goiter", "Mass"]].tolist() == [goiter, mass]


@pytest.mark.parametrize(
    ("projection", "view"),
    [
        ("PA", "PA"),
        ("AP", "AP"),
        ("AP_horizontal", "AP"),
        ("L", "lateral"),
        ("COSTAL", "other"),
        ("EXCLUDE", "other"),
        ("UNK", ""),
        ("", ""),
    ],
)
def test_the_view_is_the_projection(read, projection, view):
    assert read({"Projection": projection})["view"].tolist() == [view]


@pytest.mark.parametrize(
    ("birth", "study", "age"),
    [
        ("1950", "20140731", 64),
        ("1950.0", "20140731", 64),
        ("", "20140731", np.nan),
        ("1950", "", np.nan),
        ("2020", "20140731", np.nan),
        ("1800", "20140731", np.nan),
    ],
)
def test_age_is_the_year_of_the_study_less_that_of_birth_where_that_is_an_age(
    read, birth, study, age
):
    table = read({"PatientBirth": birth, "StudyDate_DICOM": study})
    np.testing.assert_equal(table["age"].tolist(), [age])


def test_sex_that_is_neither_f_nor_m_is_blank(read):
    assert read({"PatientSex_DICOM": "O"})["sex"].tolist() == [""]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"Labels": "cardiomegaly"}, r"column 'Labels': needs a list like .* got cardiomegaly"),
        ({"Labels": "['goiter'"}, "column 'Labels': needs a list"),
        ({"Labels": "[nan]"}, "column 'Labels': needs a list"),
        ({"Labels": "[1]"}, "column 'Labels': needs a list"),
        ({"Labels": "('goiter',)"}, "column 'Labels': needs a list"),
        ({"Labels": "[" * 10_000}, "column 'Labels': needs a list"),
        ({"Labels": "-" * 3_000 + "1"}, "column 'Labels': needs a list"),
        ({"Labels": "{[]: 1}"}, "column 'Labels': needs a list"),
        ({"Labels": r"['goi\ter']"}, "column 'Labels': needs a list"),
        ({"ImageID": "1_a.png"}, "column 'ImageID': '1_a.png' stands in line 2 already"),
        ({"ImageID": ""}, "column 'ImageID': the cell is blank"),
        ({"ImageDir": "7.0"}, "column 'ImageDir': needs a number, digits only; got '7.0'"),
        ({"PatientID": ""}, "column 'PatientID': the cell is blank"),
        ({"PatientBirth": "50"}, "column 'PatientBirth': needs a year, e.g. 1950; got '50'"),
        ({"StudyDate_DICOM": "2014"}, "column 'StudyDate_DICOM': needs a date, e.g. 20140731"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    with pytest.raises(TableError, match=rf"PADCHEST\.csv, line 3, {message}"):
        read({}, bad)


def test_a_table_without_any_finding_has_no_class(read):
    assert labels(read({"Labels": "['normal']"}, {"Labels": ""})) == {}
