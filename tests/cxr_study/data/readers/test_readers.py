import pytest

from cxr_study.common.errors import InputError
from cxr_study.data.readers import DATASETS, official_files, read

ROW = ",,Frontal," + "," * 13
CHEXPERT = "Path,Sex,Age,Frontal/Lateral,AP/PA," + ",".join(DATASETS["chexpert"].classes)
IMAGE = "patient00001/study1/view1_frontal.jpg,"


def test_several_csv_files_with_the_same_classes_and_other_images_become_one_table(tmp_path):
    def read_both(dataset, *files):
        csvs = [tmp_path / "a.csv", tmp_path / "b.csv"]
        for csv, lines in zip(csvs, files, strict=True):
            csv.write_text("\n".join(lines) + "\n")
        return read(dataset, csvs)

    a = ["image,patient,Edema,Mass", "2.png,2,1,0", "p1/1.png,1,0,0"]
    b = ["image,patient,Mass,Edema", "p2/1.png,2,1,0"]  # another image: the whole path counts
    table = read_both("table", a, b)
    assert table["image"].to_dict() == {0: "2.png", 1: "p1/1.png", 2: "p2/1.png"}
    assert table[["Edema", "Mass"]].to_numpy().tolist() == [[1, 0], [0, 0], [0, 1]]
    with pytest.raises(InputError, match=r"b\.csv: needs the same classes as .*a\.csv; Mass is in"):
        read_both("table", a, ["image,patient,Edema", "3.png,2,1"])
    first, again = ([CHEXPERT, f"CheXpert-v1.0{s}/train/{IMAGE}{ROW}"] for s in ("", "-small"))
    with pytest.raises(InputError, match=r"b\.csv: image 'patient00001/.* is already in .*a\.csv"):
        read_both("chexpert", first, again)


def test_data_sets_of_one_hospital_share_its_patients():
    words = {name: known.patients for name, known in DATASETS.items()}
    assert words["mimic"] == words["cxr-lt"] and words["vindr"] == ""
    assert len(set(words.values())) == len(words) - 1


@pytest.fixture
def folder(tmp_path):
    def fill(*names):
        for path in map(tmp_path.joinpath, names):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path

    return fill


@pytest.mark.parametrize(("dataset", "labels", "metadata"), [
    ("nih", "Data_Entry_2017.csv", None), ("nih", "Data_Entry_2017_v2020.csv.gz", None),
    ("chexpert", "train.csv", None),
    ("chexpert", "CheXpert-v1.0 batch 1 (validate & csv)/train.csv", None),
    ("mimic", "mimic-cxr-2.0.0-chexpert.csv.gz", "mimic-cxr-2.0.0-metadata.csv.gz"),
    ("cxr-lt", "cxr-lt-2023/train.csv", None), ("cxr-lt", "train_labeled.csv", None),
    ("vindr", "annotations/image_labels_train.csv", None),
    ("padchest", "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv", None),
])  # fmt: skip
def test_official_files_are_found_among_the_others(folder, dataset, labels, metadata):
    others = ["BBox_List_2017.csv", "valid.csv", "mimic-cxr-2.0.0-negbio.csv.gz", "readme.txt"]
    root = folder(labels, *([metadata] if metadata else []), *others)
    second = root / metadata if metadata else None
    assert official_files(dataset, root) == (root / labels, second, root)
    folder("images/a.png")
    assert official_files(dataset, root) == (root / labels, second, root / "images")


@pytest.mark.parametrize(("dataset", "names", "message"), [
    ("nih", [], r"needs one Data_Entry_2017\*\.csv \(or \.gz\) in .* has none"),
    ("nih", ["Data_Entry_2017.csv", "Data_Entry_2017_v2020.csv.gz"], "needs one .* has .*7.csv, "),
    ("mimic", ["mimic-cxr-2.0.0-chexpert.csv"], r"needs one mimic-cxr-2\.\*-metadata\.csv"),
    ("cxr-lt", ["cxr-lt-2023/train.csv", "cxr-lt-2024/train_labeled.csv"], "has .*2023"),
    ("table", ["labels.csv"], "dataset 'table' has no official files; write the site file"),
])  # fmt: skip
def test_a_folder_where_none_or_two_fit_is_refused(folder, dataset, names, message):
    with pytest.raises(InputError, match=message):
        official_files(dataset, folder(*names))
    with pytest.raises(InputError, match="none is not a folder"):
        official_files("nih", folder() / "none")
