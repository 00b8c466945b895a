import pytest

from cxr_study.data.readers.official_files import DiscoveryError, official_files


@pytest.fixture
def folder(tmp_path):
    def fill(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path

    return fill


@pytest.mark.parametrize(
    ("dataset", "labels", "metadata"),
    [
        ("nih", "Data_Entry_2017.csv", None),
        ("nih", "Data_Entry_2017_v2020.csv.gz", None),
        ("chexpert", "train.csv", None),
        ("chexpert", "CheXpert-v1.0 batch 1 (validate & csv)/train.csv", None),
        ("mimic", "mimic-cxr-2.0.0-chexpert.csv.gz", "mimic-cxr-2.0.0-metadata.csv.gz"),
        ("cxr-lt", "cxr-lt-2023/train.csv", None),
        ("cxr-lt", "train_labeled.csv", None),
        ("vindr", "annotations/image_labels_train.csv", None),
        ("padchest", "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv", None),
    ],
)
def test_official_files_are_found_among_the_others(folder, dataset, labels, metadata):
    others = ["BBox_List_2017.csv", "valid.csv", "mimic-cxr-2.0.0-negbio.csv.gz", "readme.txt"]
    root = folder(labels, *([metadata] if metadata else []), *others)
    found = official_files(dataset, root)
    assert found == (root / labels, root / metadata if metadata else None, root)


def test_the_images_are_in_the_folder_images_where_there_is_one(folder):
    root = folder("Data_Entry_2017.csv", "images/a.png")
    assert official_files("nih", root)[2] == root / "images"


@pytest.mark.parametrize(
    ("dataset", "names", "message"),
    [
        ("nih", [], r"needs Data_Entry_2017\*\.csv \(or \.gz\) in .* there is none"),
        ("nih", ["Data_Entry_2017.csv", "Data_Entry_2017_v2020.csv.gz"], "needs one .* there are"),
        ("mimic", ["mimic-cxr-2.0.0-chexpert.csv"], r"needs mimic-cxr-2\.\*-metadata\.csv"),
        ("cxr-lt", ["cxr-lt-2023/train.csv", "cxr-lt-2024/train_labeled.csv"], "there are .*2023"),
        ("table", ["labels.csv"], "dataset 'table' has no official files; write the site file"),
    ],
)
def test_a_folder_where_none_or_two_fit_is_refused(folder, dataset, names, message):
    with pytest.raises(DiscoveryError, match=message):
        official_files(dataset, folder(*names))


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(DiscoveryError, match="none is none"):
        official_files("nih", tmp_path / "none")
