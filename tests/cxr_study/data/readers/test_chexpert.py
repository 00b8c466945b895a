import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import chexpert

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
    ("text", "label"),
    [
        ("1.0", POSITIVE),
        ("1", POSITIVE),
        ("0.0", NEGATIVE),
        ("-1.0", UNCERTAIN),
        ("-1", UNCERTAIN),
        ("", BLANK),
    ],
)
def test_uncertain_and_blank_labels_are_returned_as_such(read, text, label):
    assert read({"Pneumonia": text})["Pneumonia"].tolist() == [label]


def test_no_finding_is_no_class(read):
    table = read({"No Finding": "1.0"})
    assert "No Finding" not in table
    assert (table[list(CHEXPERT_CLASSES)] == BLANK).all(axis=None)


def test_laterals_are_kept_with_their_view(read):
    lateral = IMAGE.replace("view1_frontal", "view2_lateral")
    table = read({"Path": lateral, "Frontal/Lateral": "Lateral", "AP/PA": ""}, {"Edema": "1"})
    assert table[["image", "view"]].to_numpy().tolist() == [[lateral, "lateral"], [IMAGE, "AP"]]


def test_the_label_order_of_train_chexbert_does_not_matter(read):
    labels = [*HEADER[6:], "No Finding"]
    row = {"Edema": "1", "Fracture": "0", "No Finding": "-1"}
    assert read(row, header=HEADER[:5] + labels).equals(read(row))


@pytest.mark.parametrize("projection", ["", "LL", "PA"])
def test_a_lateral_is_lateral_whatever_its_projection(read, projection):
    row = {"Frontal/Lateral": "Lateral", "AP/PA": projection}
    assert read(row)["view"].tolist() == ["lateral"]


@pytest.mark.parametrize("projection", ["LL", "RL", ""])
def test_a_frontal_that_is_neither_ap_nor_pa_is_frontal(read, projection):
    assert read({"AP/PA": projection})["view"].tolist() == ["frontal"]


def test_sex_unknown_is_blank_and_age_zero_is_zero(read):
    second = {"Path": IMAGE.replace("1_f", "3_f"), "Sex": "Male", "Age": "0"}
    assert read({"Sex": "Unknown"}, second)["sex"].tolist() == ["", "M"]
    assert read({}, second)["age"].tolist() == [68, 0]


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
        ({"AP/PA": "PPA"}, "column 'AP/PA': needs AP, PA, LL, RL or a blank; got 'PPA'"),
        ({"Sex": "F"}, "column 'Sex': needs Female, Male, Unknown or a blank; got 'F'"),
        ({"Frontal/Lateral": ""}, "column 'Frontal/Lateral': needs Frontal or Lateral; got ''"),
        ({"Age": "old"}, "column 'Age': needs a number of years; got 'old'"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, bad, message):
    second = {"Path": IMAGE.replace("view1", "view2")}
    with pytest.raises(TableError, match=rf"train\.csv, line 3, {message}"):
        read({}, second | bad)


def test_the_same_image_under_another_folder_stands_there_twice(read):
    with pytest.raises(
        TableError, match=r"'patient00001/study1/view1_frontal\.jpg' stands in line 2"
    ):
        read({}, {"Path": IMAGE.replace("-small", "")})


def test_the_test_set_has_paths_and_labels_only(read):
    header = ["Path", *HEADER[5:]]
    frontal = "test/patient64741/study1/view1_frontal.jpg"
    lateral = frontal.replace("view1_frontal", "view2_lateral")
    table = read({"Path": frontal, "Edema": "1.0"}, {"Path": lateral}, header=header)
    assert table["view"].tolist() == ["frontal", "lateral"]
    assert table["patient"].tolist() == ["patient64741"] * 2
    assert table["sex"].tolist() == ["", ""]
    assert table["age"].isna().all()
    assert table["Edema"].tolist() == [POSITIVE, BLANK]


def test_a_file_that_lacks_only_some_descriptors_is_refused(read):
    with pytest.raises(TableError, match="line 1: needs a column 'Sex'"):
        read({}, header=[name for name in HEADER if name != "Sex"])


def test_labels_of_studies_are_refused_because_they_name_no_image(read):
    with pytest.raises(
        TableError, match=r"has 'Study'\. Labels of studies do not say which images"
    ):
        read({}, header=["Study", *HEADER[5:]])
