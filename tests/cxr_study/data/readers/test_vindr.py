import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.readers import DATASETS
from downloads import OFFICIAL, cells_of, read_rewritten

TRAIN = cells_of(OFFICIAL["vindr"].files[0])[0]
TEST = [name for name in TRAIN if name != "rad_id"]
ZEROS = dict.fromkeys([*TRAIN[2:], "Other disease"], "0")


@pytest.fixture
def read(tmp_path):
    def read_rows(*rows, header=None):
        return read_rewritten(tmp_path, "vindr", *(ZEROS | row for row in rows), header=header)

    return read_rows


def votes(image, *readers):
    """The three lines of an image, a list of findings for each reader."""
    return [
        {"image_id": image, "rad_id": f"R{i}"} | dict.fromkeys(findings, "1")
        for i, findings in enumerate(readers, start=8)
    ]


def positive(table):
    return [[name for name in table.columns[5:] if row[name] == 1] for _, row in table.iterrows()]


def test_a_training_label_is_what_two_of_three_radiologists_say(read):
    edema, copd, none = ["Edema", "COPD"], ["COPD", "ILD"], ["No finding"]
    rows = [*votes("a", edema, copd, none), *votes("b", none, edema, edema)]
    table = read(*rows)
    assert tuple(table.columns[5:]) == DATASETS["vindr"].classes
    assert table.iloc[0, :4].tolist() == ["a", "a", "PA", ""]
    assert positive(table) == [["COPD"], ["Edema", "COPD"]]
    mixed = read(*rows[::2], *rows[1::2])  # the lines of an image need not follow each other
    assert positive(mixed.sort_values("image")) == positive(table)


def test_the_test_set_has_one_line_per_image_and_says_other_disease(read):
    header = [name.replace("Other diseases", "Other disease") for name in TEST]
    table = read({"image_id": "0f", "Other disease": "1"}, {"image_id": "00"}, header=header)
    assert table["image"].tolist() == ["0f", "00"]
    assert positive(table) == [["Other diseases"], []]


def test_only_names_that_mean_the_same_become_canonical(read):
    present = dict.fromkeys(("Pleural effusion", "Pulmonary fibrosis", "Nodule/Mass"), "1")
    table = read({"image_id": "a"} | present, header=TEST)
    assert positive(table) == [["Nodule/Mass", "Pleural Effusion", "Fibrosis"]]
    assert {"Clavicle fracture", "Rib fracture", "Other lesion"} < set(table.columns)
    assert not {"Fracture", "Nodule", "Mass", "Lung Lesion", "No finding"} & set(table.columns)


KAGGLE = "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max".split(",")


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (None, votes("a", [], []), "line 2, column 'image_id': image 'a' has 2 readers; a trainin"),
        (None, votes("a", [], [], [], []), "line 2, column 'image_id': image 'a' has 4 readers"),
        (None, [*votes("a", [], []), votes("a", [])[0]],
         "line 4, column 'rad_id': 'R8' has read image 'a' in an earlier line"),
        (None, votes("", []), "line 2, column 'image_id': the cell is blank"),
        (None, [{"image_id": "a", "rad_id": ""}], "line 2, column 'rad_id': the cell is blank"),
        (None, [{"image_id": "a", "ILD": "-1"}], "line 2, column 'ILD': needs 1 or 0; got '-1'"),
        (None, [{"image_id": "a", "ILD": ""}], "line 2, column 'ILD': needs 1 or 0; got ''"),
        (TEST, [{"image_id": "a"}] * 2, "line 3, column 'image_id': 'a' stands in line 2"),
        (KAGGLE, [{"image_id": "a"}], r"boxes of Kaggle.*use PhysioNet's image_labels_train\.csv"),
    ],
)  # fmt: skip
def test_other_than_three_readers_of_an_image_other_labels_or_columns_are_refused(
    read, header, rows, message
):
    with pytest.raises(TableError, match=message):
        read(*rows, header=header)
