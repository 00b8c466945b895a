import pytest

from cxr_study.csv_columns import TableError
from cxr_study.readers import chexpert
from cxr_study.vocabulary import CHEXPERT_CLASSES

HEADER = (
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly,"
    "Lung Opacity,Lung Lesion,Edema,Consolidation,Pneumonia,Atelectasis,Pneumothorax,"
    "Pleural Effusion,Pleural Other,Fracture,Support Devices"
).split(",")
IMAGE = "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg"
TYPICAL = {
    "Path": IMAGE,
    "Sex": "Female",
    "Age": "68",
    "Frontal/Lateral": "Frontal",
    "AP/PA": "AP",
}


@pytest.fixture
def read(tmp_path):
    def read_rows(*rows, header=HEADER):
        """Each row a dict of the cells that differ from the typical ones; labels blank."""
        path = tmp_path / "train.csv"
        lines = [",".join((TYPICAL | row).get(name, "") for name in header) for row in rows]
        path.write_text("\n".join([",".join(header), *lines]) + "\n")
        return chexpert.read(path)

    return read_rows


def test_an_official_row_becomes_a_row_of_the_label_table(read):
    table = read({"Edema": "1.0"})
    assert list(table) == ["image", "patient", "view", "sex", "age", *CHEXPERT_CLASSES]
    assert table.iloc[0, :5].tolist() == [IMAGE, "patient00001", "AP", "F", 68.0]
    assert table.loc[0, "Edema"] == 1


@pytest.mark.parametrize(
    ("text", "label"), [("1.0", 1), ("1", 1), ("0.0", 0), ("-1.0", 0), ("-1", 0), ("", 0)]
)
def test_only_a_mentioned_certain_finding_is_positive(read, text, label):
    assert read({"Pneumonia": text})["Pneumonia"].tolist() == [label]


def test_no_finding_is_no_class(read):
    table = read({"No Finding": "1.0"})
    assert "No Finding" not in table
    assert (table[list(CHEXPERT_CLASSES)] == 0).all(axis=None)


def test_laterals_are_left_out(read):
    lateral = IMAGE.replace("view1_frontal", "view2_lateral")
    table = read({"Path": lateral, "Frontal/Lateral": "Lateral", "AP/PA": ""}, {"Edema": "1"})
    assert table["image"].tolist() == [IMAGE]
    assert table.index.tolist() == [0]


def test_columns_in_another_order_are_found_by_name(read):
    table = read({"Edema": "1", "Fracture": "0"}, header=HEADER[::-1])
    assert [name for name in CHEXPERT_CLASSES if table.loc[0, name] == 1] == ["Edema"]


@pytest.mark.parametrize("view", ["LL", "RL", ""])
def test_a_frontal_of_another_projection_has_no_view(read, view):
    assert read({"AP/PA": view})["view"].tolist() == [""]


def test_sex_unknown_is_blank(read):
    assert read({"Sex": "Unknown"}, {"Path": IMAGE.replace("1_f", "3_f"), "Sex": "Male"})[
        "sex"
    ].tolist() == ["", "M"]


@pytest.mark.parametrize(
    "folder",
    ["CheXpert-v1.0/train/", "CheXpert-v1.0/valid/", "CheXpert-v1.0 batch 2 (train 1)/", ""],
)
def test_the_patient_is_found_in_every_layout(read, folder):
    path = folder + "patient64541/study12/view3_frontal.jpg"
    assert read({"Path": path}).loc[0, ["image", "patient"]].tolist() == [path, "patient64541"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"Edema": "2"}, "column 'Edema': needs 1, 0, -1 or a blank; got '2'"),
        ({"Path": "images/1.jpg"}, "column 'Path': needs a path that ends like patient00001/"),
        ({"Path": IMAGE}, "column 'Path': .* stands in line 2 already"),
        ({"Frontal/Lateral": ""}, "column 'Frontal/Lateral': needs Frontal or Lateral; got ''"),
        ({"Age": "old"}, "column 'Age': needs a number of years; got 'old'"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    second = {"Path": IMAGE.replace("view1", "view2")}
    with pytest.raises(TableError, match=rf"train\.csv, line 3, {message}"):
        read({}, second | bad)


def test_lines_are_counted_with_the_laterals(read):
    lateral = {
        "Path": IMAGE.replace("view1_frontal", "view2_lateral"),
        "Frontal/Lateral": "Lateral",
    }
    with pytest.raises(TableError, match="line 3, column 'Edema'"):
        read(lateral, {"Edema": "x"})


def test_a_file_of_laterals_only_is_refused(read):
    with pytest.raises(TableError, match="no row of the file says Frontal"):
        read({"Frontal/Lateral": "Lateral"})


def test_the_test_set_without_view_columns_is_refused_by_the_missing_column(read):
    with pytest.raises(TableError, match="line 1: needs a column 'Sex'"):
        read({}, header=["Path", *HEADER[5:]])
