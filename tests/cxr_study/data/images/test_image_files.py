import os
from pathlib import Path

import pytest

from cxr_study.data.images.image_files import ImageError, allowed, locate, look_at


@pytest.fixture
def tree(tmp_path):
    """Make files below a folder and return their paths."""

    def make(*names):
        paths = [tmp_path / name for name in names]
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return paths

    return make


def test_a_file_lies_where_its_path_says_and_is_looked_for_nowhere_else(tree, tmp_path):
    files = tree("a.png", "0/b.png", "files/p10/p10000032/s50414267/c.jpg")
    tree("copy/a.png", "other/a.png")
    images = ["a.png", "0/b.png", "files/p10/p10000032/s50414267/c.jpg"]
    assert locate(tmp_path, images) == files


def test_where_only_the_whole_path_identifies_nothing_is_looked_for(tree, tmp_path):
    tree("p2/1.png")
    assert locate(tmp_path, ["p1/1.png"], identifying=0) == [None]


@pytest.mark.parametrize(
    ("file", "image"),
    [
        ("images_012/images/1_000.png", "1_000.png"),  # NIH from Kaggle
        ("1_000.jpg", "1_000.png"),  # NIH resized
        ("pad.png", "54/pad.png"),  # PadChest, flat
        ("train/abc.dicom", "abc"),  # VinDr: the table has no suffix
        ("abc.PNG", "abc"),
        ("train/1.2.840.10008", "1.2.840.10008"),  # no suffix but dots
        ("deep/1.2.840.10008.dcm", "1.2.840.10008"),
    ],
)
def test_one_name_is_found_at_any_depth_whatever_its_suffix(tree, tmp_path, file, image):
    files = tree(file)
    assert locate(tmp_path, [image]) == files


@pytest.mark.parametrize(
    "folder",
    ["", "train", "CheXpert-v1.0-small/train", "CheXpert-v1.0 batch 2 (train 1)", "a/valid"],
)
def test_chexpert_images_are_known_by_patient_study_and_view(tree, tmp_path, folder):
    files = tree(
        f"{folder}/patient00001/study1/view1_frontal.jpg".lstrip("/"),
        f"{folder}/patient00001/study2/view1_frontal.jpg".lstrip("/"),
        f"{folder}/patient00002/study1/view1_frontal.jpg".lstrip("/"),
    )
    images = [
        f"CheXpert-v1.0/train/{patient}/view1_frontal.jpg"
        for patient in ("patient00001/study1", "patient00001/study2", "patient00002/study1")
    ]
    assert locate(tmp_path, [*images, images[0].replace("study1", "study3")], 3) == [*files, None]


def test_the_folder_itself_may_be_part_of_what_identifies(tree, tmp_path, monkeypatch):
    files = tree("patient00001/study1/view1_frontal.jpg")
    images = ["v/train/patient00001/study1/view1_frontal.jpg"]
    monkeypatch.chdir(tmp_path / "patient00001")
    assert locate(Path(), images, 3) == files


def test_a_missing_image_has_no_file(tree, tmp_path):
    tree("a.csv", "a.png.txt", ".hidden/a.png", "._a.png", "b.png")
    (tmp_path / "a.png").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.png").mkdir()
    assert locate(tmp_path, ["a.png", "folder.png"]) == [None, None]


@pytest.mark.parametrize("other", ["512/a.png", "train/a.dcm", "flat/a"])
def test_two_files_for_one_image_are_refused_by_name(tree, tmp_path, other):
    first, second = sorted(tree("224/a.png", other))
    with pytest.raises(ImageError, match="one file needs to be a below") as error:
        locate(tmp_path, ["a.png"])
    assert f"both {first} and {second} could be" in str(error.value)


def test_links_are_followed(tree, tmp_path):
    tree("store/images/a.png")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/linked").symlink_to(tmp_path / "store")
    assert locate(tmp_path / "site", ["a.png"]) == [tmp_path / "site/linked/images/a.png"]


def test_one_file_reached_in_two_ways_is_one(tree, tmp_path):
    (file,) = tree("deep/images/a.png")
    for circle in ("circle", "back"):
        (tmp_path / "deep" / circle).symlink_to(tmp_path)
    (tmp_path / "deep/flat").mkdir()
    (tmp_path / "deep/flat/a.png").symlink_to(file)
    (found,) = locate(tmp_path, ["a.png"])
    assert found.samefile(file)


def test_the_tree_is_walked_once_and_only_when_needed(tree, tmp_path, monkeypatch):
    files = tree("1/a.png", "2/b.png")
    walks = []
    walk = os.walk
    monkeypatch.setattr(os, "walk", lambda *args, **kw: walks.append(args) or walk(*args, **kw))
    assert locate(tmp_path, ["1/a.png", "2/b.png"]) == files
    assert walks == []
    assert locate(tmp_path, ["a.png", "b.png", "c.png"]) == [*files, None]
    assert len(walks) == 1


@pytest.fixture
def png(tmp_path):
    path = tmp_path / "0/a.png"
    path.parent.mkdir()
    path.write_bytes(b"123")
    os.utime(path, ns=(5, 7))
    return str(path)


def test_a_file_is_named_relative_to_the_folder(png, tmp_path):
    (inside, outside), _ = look_at(tmp_path, ["a", "a"], [png, png[1:]])
    assert (inside.image, inside.path, inside.file) == ("a", png, "0/a.png")
    assert outside.file == png[1:]


def test_a_file_that_is_not_there_has_no_stamp(png, tmp_path):
    sources, failures = look_at(tmp_path, ["a", "b", "c"], [png, "", f"{png}x"])
    assert [source.stamp for source in sources] == [(3, 7), None, None]
    assert failures == {}


def test_a_file_that_cannot_be_looked_at_is_told(png, tmp_path):
    _, failures = look_at(tmp_path, ["a"], [f"{png}/b.png"])
    assert failures == {"0/a.png/b.png": "Not a directory"}


@pytest.mark.parametrize(
    ("limit", "most"),
    [(0, 0), (3, 3), ("3", 3), ("1%", 2), ("0.5 %", 1), ("100%", 299), ("0%", 0)],
)
def test_a_limit_is_a_number_or_a_share(limit, most):
    assert allowed(limit, 299) == most


@pytest.mark.parametrize("limit", [-1, 0.5, True, "101%", "-1%", "many", "", None, [1]])
def test_nothing_else_is_a_limit(limit):
    with pytest.raises(ValueError, match="needs a number of images, or a share such as 1%"):
        allowed(limit, 299)
