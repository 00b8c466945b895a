from functools import partial

import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.label_table import BLANK, POSITIVE
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from downloads import OFFICIAL, PATIENTS, cells_of, read_rewritten

HEADER = cells_of(OFFICIAL["chexpert"].files[0])[0][:-1]
IMAGE = f"{PATIENTS}1/study1/view1_frontal.jpg"
OTHER = {"Path": IMAGE.replace("view1", "view2")}


@pytest.fixture
def read(tmp_path):
    return partial(read_rewritten, tmp_path, "chexpert")


@pytest.mark.parametrize(
    ("column", "field", "meanings"),
    [
        ("Edema", "Edema", {"1": 1, "0.0": 0, "-1.0": -1, "": BLANK}),
        ("AP/PA", "view", {"LL": "frontal", "RL": "frontal", "": "frontal", "PA": "PA"}),
        ("Frontal/Lateral", "view", {"Lateral": "lateral"}),
        ("Sex", "sex", {"Unknown": "", "Male": "M"}),
        ("Age", "age", {"0": 0}),
        ("Path", "patient", {f"{folder}patient7/study12/view3_frontal.jpg": "patient7"
                             for folder in ("", "v1.0/valid/", "batch 2 (train 1)/")}),
    ],
)  # fmt: skip
def test_cells_mean(read, column, field, meanings):
    assert [read({column: text})[field][0] for text in meanings] == list(meanings.values())


def test_no_finding_is_no_class_and_the_order_of_the_labels_does_not_matter(read):
    row = {"Edema": "1", "Fracture": "0", "No Finding": "-1"}
    turned = read(row, header=[*HEADER[:5], *HEADER[6:], "No Finding"])
    assert turned.equals(read(row))
    assert tuple(turned.columns[5:]) == CHEXPERT_CLASSES


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"Edema": "2"}, "column 'Edema': needs 1, 0, -1 or a blank; got '2'"),
        ({"Path": "images/1.jpg"}, "column 'Path': needs a path that ends like patient00001/"),
        ({"Path": IMAGE}, "column 'Path': .* stands in line 2 already"),
        ({"Path": IMAGE.replace("-small", "")}, "'patient00001/study1/view1_frontal.jpg' stands"),
        ({"AP/PA": "PPA"}, "column 'AP/PA': needs AP, PA, LL, RL or a blank; got 'PPA'"),
        ({"Sex": "F"}, "column 'Sex': needs Female, Male, Unknown or a blank; got 'F'"),
        ({"Frontal/Lateral": ""}, "column 'Frontal/Lateral': needs Frontal or Lateral; got ''"),
        ({"Age": "old"}, "column 'Age': needs a number of years; got 'old'"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    with pytest.raises(TableError, match=rf"labels\.csv, line 3, .*{message}"):
        read({}, OTHER | bad)


def test_the_test_set_has_paths_and_labels_only(read):
    frontal = "test/patient64741/study1/view1_frontal.jpg"
    lateral = frontal.replace("view1_frontal", "view2_lateral")
    header = ["Path", *HEADER[5:]]
    table = read({"Path": frontal, "Edema": "1.0"}, {"Path": lateral}, header=header)
    assert table["view"].tolist() == ["frontal", "lateral"]
    assert table["patient"].tolist() == ["patient64741"] * 2
    assert table["sex"].tolist() == ["", ""] and table["age"].isna().all()
    assert table["Edema"].tolist() == [POSITIVE, BLANK]


def test_a_file_with_other_columns_is_refused(read):
    with pytest.raises(TableError, match="line 1: needs a column 'Sex'"):
        read({}, header=[name for name in HEADER if name != "Sex"])
    with pytest.raises(TableError, match=r"has 'Study'\. Labels of studies do not say which image"):
        read({}, header=["Study", *HEADER[5:]])
