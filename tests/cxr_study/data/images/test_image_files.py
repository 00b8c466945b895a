import os
import unicodedata
from pathlib import Path

import pytest

from cxr_study.data.images.image_files import ImageError, allowed, locate, repeated, stat_files


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


def test_a_file_is_where_its_path_says_and_is_searched_only_otherwise(tree, tmp_path, monkeypatch):
    images = ["a.png", "0/b.png", "files/p10/p10000032/s50414267/c.jpg"]
    files = tree(*images)
    tree("copy/a.png", "other/a.png")
    walks, walk = [], os.walk
    monkeypatch.setattr(os, "walk", lambda *args, **kw: walks.append(args) or walk(*args, **kw))
    assert locate(tmp_path, images) == files
    assert (locate(tmp_path, ["p1/b.png"], identifying=0), walks) == ([None], [])
    tree("d.csv", "d.png.txt", ".hidden/d.png", "._d.png")
    (tmp_path / "d.png").symlink_to(tmp_path / "nowhere")
    (tmp_path / "e.png").mkdir()
    missing = ["d.png", "e.png"]
    assert locate(tmp_path, ["b.png", "x/c.jpg", *missing]) == [*files[1:], None, None]
    assert len(walks) == 1


@pytest.mark.parametrize(("file", "image"), [
    ("images_012/images/1_000.png", "1_000.png"),  # NIH from Kaggle
    ("1_000.jpg", "1_000.png"),  # NIH resized
    ("pad.png", "54/pad.png"),  # PadChest, flat
    ("train/abc.dicom", "abc"),  # VinDr: the table has no suffix
    ("abc.PNG", "abc"),
    ("train/1.2.840.10008", "1.2.840.10008"),  # no suffix but dots
    ("deep/1.2.840.10008.dcm", "1.2.840.10008"),
])  # fmt: skip
def test_one_name_is_found_at_any_depth_whatever_its_suffix(tree, tmp_path, file, image):
    files = tree(file)
    assert locate(tmp_path, [image]) == files


@pytest.mark.parametrize("folder", ["", "train", "CheXpert-v1.0 batch 2 (train 1)", "a/valid"])
def test_chexpert_images_are_known_by_patient_study_and_view(tree, tmp_path, monkeypatch, folder):
    studies = ("patient00001/study1", "patient00001/study2", "patient00002/study1")
    images = [f"{study}/view1_frontal.jpg" for study in studies]
    files = tree(*(f"{folder}/{image}".lstrip("/") for image in images))
    wanted = [f"CheXpert-v1.0/train/{image}" for image in (*images, "patient3/study1/view1.jpg")]
    assert locate(tmp_path, wanted, 3) == [*files, None]
    monkeypatch.chdir(files[0].parents[1])  # the folder itself is a part of what identifies
    assert locate(Path(), wanted[:1], 3) == files[:1]


DEEP, A = "s1/b.tif", "p1/a.PNG"
OUTSIDE = ("{root}/../elsewhere.png", "../elsewhere.png", "{root}x.png")


@pytest.mark.parametrize(("images", "nested", "file"), [
    (("p1/a", A, f"{{root}}/{A}"), False, A),  # a suffix is supplied
    (("p1/a.jpg", "a.PNG", "a", DEEP, *OUTSIDE), False, None),
    (("p1/a", A, "a.PNG", "a", "{root}/p1/a"), True, A), ((DEEP, "b"), True, f"p2/{DEEP}"),
    (("p1/b.tif", "a.jpg", *OUTSIDE), True, None), (("1.2.840",), False, "1.2.840.dcm"),
])  # fmt: skip
def test_a_path_may_lack_its_suffix_and_if_requested_folders(tree, tmp_path, images, nested, file):
    root = tmp_path / "pix"
    tree(*(f"pix/{file}" for file in (A, f"{A}.jpg", f"p2/{DEEP}", "1.2.840.dcm")))
    tree("elsewhere.png", "pixx.png")
    (tmp_path / "link").symlink_to(root)
    for folder in (root, tmp_path / "link"):
        found = locate(folder, [image.format(root=root) for image in images], 0, nested)
        assert found == [None if file is None else folder / file] * len(images)


@pytest.mark.parametrize(("files", "image", "how"), [
    *((("224/a.png", other), "a.png", ()) for other in ("512/a.png", "train/a.dcm", "flat/a")),
    (("a.png", "p1/a.png"), "a.png", (0, True)), (("a.png", "p1/a.tif"), "a", (0, True)),
    (("p1/a.png", "p1/a.tif"), "p1/a", (0, False)),
])  # fmt: skip
def test_what_two_files_could_be_is_refused_with_both(tree, tmp_path, files, image, how):
    first, second = sorted(tree(*files))
    both = f"{first} and {second}|{second} and {first}"
    with pytest.raises(ImageError, match=f"image .* needs one file below .*; found both ({both})"):
        locate(tmp_path, [image], *how)


def test_links_are_followed_and_one_file_reached_in_two_ways_is_one(tree, tmp_path):
    (file,) = tree("deep/images/a.png")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/linked").symlink_to(tmp_path / "deep")
    assert locate(tmp_path / "site", ["a.png"]) == [tmp_path / "site/linked/images/a.png"]
    for circle in ("circle", "back"):
        (tmp_path / "deep" / circle).symlink_to(tmp_path)
    (tmp_path / "site/a.png").symlink_to(file)
    (found,) = locate(tmp_path, ["a.png"])
    assert found.samefile(file)


def test_the_state_of_a_file_is_looked_at(tmp_path):
    (tmp_path / "0").mkdir()
    (tmp_path / "0/a.png").write_bytes(b"123")
    png = str(tmp_path / "0/a.png")
    os.utime(png, ns=(5, 7))
    files = [png, png[1:], "", f"{png}x", f"{png}/b.png"]
    (there, outside, *nowhere), failures = stat_files(tmp_path, ["a"] * 5, files)
    assert (there.image, there.path, there.file, there.stamp[:2]) == ("a", png, "0/a.png", (3, 7))
    assert (outside.file, [source.stamp for source in nowhere]) == (png[1:], [None] * 3)
    assert failures == {"0/a.png/b.png": "Not a directory"}


def test_a_limit_is_a_number_or_a_share():
    limits = {0: 0, 3: 3, "3": 3, "1%": 2, "0.5 %": 1, "100%": 299, "0%": 0}
    assert {limit: allowed(limit, 299) for limit in limits} == limits
    assert allowed("0.57%", 10_000) == 57  # 0.57 x 10,000 is less than 5,700 in floating point
    for limit in (-1, 0.5, True, "101%", "-1%", "many", "", None, [1]):
        with pytest.raises(ValueError, match="needs a number of images, or a share such as 1%"):
            allowed(limit, 299)


@pytest.mark.parametrize("identifying", [0, 1])
def test_an_umlaut_is_found_however_its_name_is_composed(tmp_path, identifying):
    for form in ("NFC", "NFD"):
        folder = tmp_path / form / unicodedata.normalize(form, "Müller")
        folder.mkdir(parents=True)
        file = folder / unicodedata.normalize(form, "Röntgen.png")
        file.touch()
        for asked in ("NFC", "NFD"):
            image = unicodedata.normalize(asked, "Müller/Röntgen.png")
            assert locate(tmp_path / form, [image, "Müller/gone.png"], identifying) == [file, None]


def test_of_files_with_the_same_bytes_each_later_image_names_the_first(tmp_path):
    long = bytes(5000)
    bytes_of = dict.fromkeys("acg", b"one") | dict.fromkeys("df", long + b"x")
    bytes_of |= {"b": b"two", "e": long + b"y"}
    for name, written in bytes_of.items():
        (tmp_path / name).write_bytes(written)
    files = [*(tmp_path / name for name in bytes_of), None]
    assert repeated([*bytes_of, "missing"], files) == {"c": "a", "g": "a", "f": "d"}
