import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.readers import DATASETS, read

ROW = ",,Frontal," + "," * 13
CHEXPERT = "Path,Sex,Age,Frontal/Lateral,AP/PA," + ",".join(DATASETS["chexpert"].classes)


@pytest.fixture
def write(tmp_path):
    def write_csv(name, *lines):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    return write_csv


def test_several_csv_files_become_one_table_file_after_file(write):
    a = write("a.csv", "image,patient,Edema,Mass", "2.png,2,1,0", "1.png,1,0,0")
    b = write("b.csv", "image,patient,Mass,Edema", "3.png,2,1,0")
    table = read("table", [a, b])
    assert table["image"].tolist() == ["2.png", "1.png", "3.png"]
    assert table.index.tolist() == [0, 1, 2]
    assert table[["Edema", "Mass"]].to_numpy().tolist() == [[1, 0], [0, 0], [0, 1]]


def test_files_with_different_classes_are_refused(write):
    a = write("a.csv", "image,patient,Edema,Mass", "2.png,2,1,0")
    b = write("b.csv", "image,patient,Edema", "3.png,2,1")
    with pytest.raises(TableError, match=r"b\.csv: needs the same classes as .*a\.csv; Mass is in"):
        read("table", [a, b])


def test_an_image_in_two_files_is_refused_whatever_folder_it_is_said_to_be_in(write):
    image = "patient00001/study1/view1_frontal.jpg,"
    a = write("a.csv", CHEXPERT, f"CheXpert-v1.0/train/{image}{ROW}")
    b = write("b.csv", CHEXPERT, f"CheXpert-v1.0-small/train/{image}{ROW}")
    with pytest.raises(TableError, match=r"b\.csv: image 'patient00001/.* stands in .*a\.csv"):
        read("chexpert", [a, b])


def test_a_hospitals_images_are_told_apart_by_their_whole_path(write):
    a = write("a.csv", "image,patient,Edema", "p1/1.png,1,1")
    b = write("b.csv", "image,patient,Edema", "p2/1.png,2,1")
    assert len(read("table", [a, b])) == 2


def test_data_sets_of_one_hospital_share_its_patients():
    assert DATASETS["mimic"].patients == DATASETS["cxr-lt"].patients == "mimic"
    others = [known.patients for name, known in DATASETS.items() if name not in ("mimic", "cxr-lt")]
    assert len(set(others)) == len(others)
    assert DATASETS["vindr"].patients == ""
