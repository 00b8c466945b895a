import numpy as np
import pytest

from cxr_study.data.labels.csv_columns import TableError
from downloads import read_rewritten

NAN = np.nan


@pytest.fixture
def read(tmp_path):
    def read_rows(*rows):
        named = ({"ImageID": f"{i}_a.png", "Labels": "['normal']"} | r for i, r in enumerate(rows))
        return read_rewritten(tmp_path, "padchest", *named)

    return read_rows


@pytest.mark.parametrize(
    ("lists", "labels"),
    [
        # Every finding that occurs is a class, and absent elsewhere.
        (["['goiter']", "['cardiomegaly']", "['normal']"],
         {"Cardiomegaly": [0, 1, 0], "goiter": [1, 0, 0]}),
        # It counts under its whole name only.
        (["['subcutaneous emphysema', 'breast mass']", "['mass']"],
         {"Mass": [0, 1], "Subcutaneous Emphysema": [1, 0], "breast mass": [1, 0]}),
        # Names that mean the same are one class, whatever their case.
        (["[' Cardiomegaly', 'cardiomegaly ', 'pulmonary edema', 'NSG tube']"],
         {"Cardiomegaly": [1], "Edema": [1], "NSG tube": [1]}),
        # A list that says nothing about findings is not labelled.
        *(([silent, "['goiter']"], {"goiter": [NAN, 1]}) for silent in (
            "", "[]", "['']", "[' unchanged', 'suboptimal study']", "['Exclude']")),
        # A remark takes nothing from what else the list says.
        (["['normal', 'unchanged']", "['goiter']"], {"goiter": [0, 1]}),
        (["['unchanged', 'goiter']", "['mass']"], {"Mass": [0, 1], "goiter": [1, 0]}),
        (["['normal']", ""], {}),
    ],
)  # fmt: skip
def test_lists_of_findings_become_labels(read, lists, labels):
    table = read(*({"Labels": text} for text in lists))
    np.testing.assert_equal({name: table[name].tolist() for name in table.columns[5:]}, labels)
    assert (table.dtypes.iloc[5:] == np.float32).all()


@pytest.mark.parametrize(
    ("column", "field", "meanings"),
    [
        ("Projection", "view", {"PA": "PA", "AP": "AP", "AP_horizontal": "AP", "L": "lateral"}),
        ("Projection", "view", {"COSTAL": "other", "EXCLUDE": "other", "UNK": "", "": ""}),
        ("PatientSex_DICOM", "sex", {"F": "F", "O": ""}),
        # Age is the year of the examination, 2014, less that of birth, where that is an age.
        ("PatientBirth", "age", {"1950": 64, "1950.0": 64, "": NAN, "2020": NAN, "1800": NAN}),
        ("StudyDate_DICOM", "age", {"": NAN, "20140731": 64}),
    ],
)
def test_cells_mean(read, column, field, meanings):
    rows = ({"PatientBirth": "1950", "StudyDate_DICOM": "20140731", column: t} for t in meanings)
    np.testing.assert_equal(read(*rows)[field].tolist(), [*meanings.values()])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"Labels": "cardiomegaly"}, r"column 'Labels': needs a list like .* got cardiomegaly"),
        *(({"Labels": text}, "column 'Labels': needs a list") for text in (
            "['goiter'", "[nan]", "[1]", "('goiter',)", "[" * 10_000, "-" * 3_000 + "1", "{[]: 1}",
            r"['goi\ter']")),
        ({"ImageID": "0_a.png"}, "column 'ImageID': '0_a.png' stands in line 2 already"),
        ({"ImageID": ""}, "column 'ImageID': the cell is blank"),
        ({"ImageDir": "7.0"}, "column 'ImageDir': needs a number, digits only .*; got '7.0'"),
        ({"PatientID": ""}, "column 'PatientID': the cell is blank"),
        ({"PatientBirth": "50"}, "column 'PatientBirth': needs a year, e.g. 1950; got '50'"),
        ({"StudyDate_DICOM": "2014"}, "column 'StudyDate_DICOM': needs a date, e.g. 20140731"),
    ],
)  # fmt: skip
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    with pytest.raises(TableError, match=rf"labels\.csv, line 3, {message}"):
        read({}, bad)
