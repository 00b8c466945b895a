import numpy as np
import pytest

from cxr_study.data.labels.csv_columns import TableError
from downloads import read_rewritten


@pytest.fixture
def read(tmp_path):
    def read_rows(*rows):
        named = ({"ImageID": f"{i}_a.png", "Labels": "['normal']"} | r for i, r in enumerate(rows))
        return read_rewritten(tmp_path, "padchest", *named)

    return read_rows


def labels(table):
    return {name: table[name].tolist() for name in table.columns[5:]}


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


def test_names_that_mean_the_same_are_one_class_whatever_their_case(read):
    table = read({"Labels": "[' Cardiomegaly', 'cardiomegaly ', 'pulmonary edema', 'NSG tube']"})
    assert labels(table) == {"Cardiomegaly": [1], "Edema": [1], "NSG tube": [1]}
    assert (table.dtypes.iloc[5:] == np.float32).all()


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
    ("column", "field", "meanings"),
    [
        ("Projection", "view", {"PA": "PA", "AP": "AP", "AP_horizontal": "AP", "L": "lateral"}),
        ("Projection", "view", {"COSTAL": "other", "EXCLUDE": "other", "UNK": "", "": ""}),
        ("PatientSex_DICOM", "sex", {"F": "F", "O": ""}),
    ],
)
def test_cells_mean(read, column, field, meanings):
    assert read(*({column: text} for text in meanings))[field].tolist() == [*meanings.values()]


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
        ({"ImageID": "0_a.png"}, "column 'ImageID': '0_a.png' stands in line 2 already"),
        ({"ImageID": ""}, "column 'ImageID': the cell is blank"),
        ({"ImageDir": "7.0"}, "column 'ImageDir': needs a number, digits only .*; got '7.0'"),
        ({"PatientID": ""}, "column 'PatientID': the cell is blank"),
        ({"PatientBirth": "50"}, "column 'PatientBirth': needs a year, e.g. 1950; got '50'"),
        ({"StudyDate_DICOM": "2014"}, "column 'StudyDate_DICOM': needs a date, e.g. 20140731"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    with pytest.raises(TableError, match=rf"labels\.csv, line 3, {message}"):
        read({}, bad)


def test_a_table_without_any_finding_has_no_class(read):
    assert labels(read({"Labels": "['normal']"}, {"Labels": ""})) == {}
