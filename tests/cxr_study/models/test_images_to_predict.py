from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from cxr_study.data.images import image_store
from cxr_study.data.images.image_files import ImageError
from cxr_study.models import images_to_predict
from cxr_study.models.images_to_predict import FoundImage, far_from_training, file_flags, find
from deep_pictures import png_16
from dicom_files import dataset, written
from surgical_aggregation.aggregation.feature_statistics import statistics_of
from tiny_model import picture


def test_a_folder_has_pictures_and_dicom_files_by_path_and_nothing_hidden(tmp_path):
    for name in ("b.PNG", "a/z.jpeg", ".hidden.png", ".trash/x.png"):
        picture(tmp_path / name.lower()).rename(tmp_path / name)
    (tmp_path / "a/IM0001").write_bytes(written(dataset([[1, 2]])))
    (tmp_path / "README").write_text("no image")
    assert [one.image for one in find([tmp_path])] == ["a/IM0001", "a/z.jpeg", "b.PNG"]


def test_a_csv_names_images_by_path_or_wherever_they_are(tmp_path):
    csv = tmp_path / "list.csv"
    first = picture(tmp_path / "images_001/images/1.png")
    csv.write_text("Finding,Image Index\nMass,1.png\nHernia,2.png\n")
    assert find([csv]) == [FoundImage("1.png", str(first)), FoundImage("2.png", "")]
    path = "CheXpert-v1.0/train/patient1/study1/view1.jpg"
    second = picture(tmp_path / "small/train/patient1/study1/view1.jpg")
    csv.write_text(f"Path\n{path}\n")
    assert find([csv]) == [FoundImage(path, str(second))]


def test_a_csvs_image_is_the_file_at_its_path_and_never_that_of_another_image(tmp_path):
    files = [str(picture(tmp_path / name)) for name in ("a/p2/1.png", "a/x.png", "b/p2/1.png")]
    csv = tmp_path / "a/list.csv"
    csv.write_text(f"image\np1/1.png\np1\\1.png\np2\\1.png\nx.png\n{files[2]}\n")
    assert [one.path for one in find([csv])] == ["", "", *files]
    csv.write_text("image\n2020/p2/s1/1.png\n2021/p2/s1/1.png\n")
    picture(tmp_path / "a/2021/p2/s1/1.png")
    with pytest.raises(ImageError, match=r"'2020/p2/s1/1.png' and '2021/p2/s1/1.png' need a file"):
        find([csv])
    csv.write_text("image\n1.png\n")
    with pytest.raises(ImageError, match="needs one file below"):
        find([csv])


def test_images_of_several_sources_are_named_by_their_source(tmp_path):
    files = [picture(tmp_path / name) for name in ("a/1.png", "b/1.png", "c.png")]
    (tmp_path / "b/list.csv").write_text("image\n1.png\n")
    sources = [tmp_path / "a", tmp_path / "b/list.csv", tmp_path / "c.png"]
    assert find(sources) == [FoundImage(str(file), str(file)) for file in files]
    assert [one.image for one in find(sources[:1])] == ["1.png"]


@pytest.mark.parametrize(("text", "message"), [
    ("picture\na.png\n", "list.csv needs a column named one of image, .*; has picture"),
    ("image,x\n,1\n", "line 2: column image needs an image"),
    ("image\n", "needs a row; there is none"),
])  # fmt: skip
def test_a_source_without_images_is_refused(tmp_path, text, message):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        find([tmp_path / "list.csv"])
    with pytest.raises(ValueError, match="needs an image file"):
        find([tmp_path])


def test_pixels_that_were_decoded_before_are_not_decoded_again(cache, tmp_path, monkeypatch):
    folder = tmp_path / "images"
    for name in ("a.png", "sub/b.png"):
        picture(folder / name, seed=len(name))
    files = [one.path for one in find([folder])]
    prepared = image_store.prepare(folder, ["a", "b"], files, 32)
    picture(folder / "new.png", seed=9)
    counted = Mock(side_effect=images_to_predict.decoding.decode)
    monkeypatch.setattr(images_to_predict.decoding, "decode", counted)
    (read,) = images_to_predict.read(find([folder / "sub", folder]), 32)
    names = [str(folder / name) for name in ("sub/b.png", "a.png", "new.png", "sub/b.png")]
    assert [one.image for one in read] == names
    assert [call.args[0] for call in counted.mock_calls] == [(folder / "new.png").read_bytes()]
    for one, row in ((read[1], 0), (read[3], 1), (read[0], 1)):
        assert (one.pixels == prepared.pixels[prepared.index["row"][row]]).all()
    picture(folder / "a.png", seed=77)  # a changed file is decoded again
    (again,) = images_to_predict.read(find([folder / "a.png"]), 32)
    assert counted.call_count == 2 and not (again[0].pixels == read[1].pixels).all()


def test_pictures_are_read_with_their_sites_bits_kept_ones_too(cache, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "a.png").write_bytes(png_16(np.linspace(0, 2**14 - 1, 1024).reshape(32, 32)))
    for _ in range(2):  # decoded, then kept
        ((alone,),) = images_to_predict.read(find([folder / "a.png"]), 32)
        ((known,),) = images_to_predict.read(find([folder / "a.png"]), 32, 14)
        assert alone.flags[0].startswith("14-bit values") and alone.pixels.max() == 64
        assert (known.flags, known.bits, known.pixels.max()) == ((), 14, 255)
        image_store.prepare(folder, ["a"], [str(folder / "a.png")], 32, bits=14)


def test_images_come_in_chunks_in_order_and_what_is_missing_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(images_to_predict, "CHUNK", 2)
    for name in "abcde":
        picture(tmp_path / f"{name}.png")
    found = find([tmp_path])
    (tmp_path / "d.png").unlink()
    chunks = list(images_to_predict.read(found, 32))
    assert [[one.image[0] for one in chunk] for chunk in chunks] == [["a", "b"], ["c", "d"], ["e"]]
    assert chunks[1][1].pixels is None and chunks[1][1].problem == "No such file or directory"


@pytest.mark.parametrize(("elements", "flags"), [
    ({"Modality": "DX", "ViewPosition": "PA", "BodyPartExamined": "CHEST"}, []),
    ({"Modality": "CT"}, ["modality CT"]), ({"Modality": "CR", "ViewPosition": "LL"}, ["view LL"]),
    ({"SeriesDescription": "Thorax LAT"}, ["view LATERAL"]),
])  # fmt: skip
def test_a_dicom_header_tells_what_is_no_frontal_chest_radiograph(tmp_path, elements, flags):
    (tmp_path / "a.dcm").write_bytes(written(dataset(np.ones((40, 40), np.uint16), **elements)))
    assert file_flags(tmp_path / "a.dcm", 32) == flags


def test_colour_size_and_shape_of_a_picture_are_flagged(tmp_path):
    assert file_flags(picture(tmp_path / "grey.png"), 32) == []
    assert file_flags(picture(tmp_path / "small.png", (31, 40)), 32) == ["small: 31 x 40 pixels"]
    assert file_flags(picture(tmp_path / "wide.png", (200, 40)), 32) == ["shape: 200 x 40 pixels"]
    grey = np.asarray(Image.open(tmp_path / "grey.png"))
    Image.fromarray(np.stack([grey] * 3, axis=2)).save(tmp_path / "grey.jpg")
    assert file_flags(tmp_path / "grey.jpg", 32) == []  # grey, though stored in colours
    Image.fromarray(np.stack([grey, grey // 2, grey], axis=2)).save(tmp_path / "colour.jpg")
    assert file_flags(tmp_path / "colour.jpg", 32) == ["colour"]


def test_pixels_without_contrast_are_flagged():
    ramp = np.linspace(0, 255, 32 * 32).reshape(32, 32).astype(np.uint8)
    pictures = ramp, np.full((32, 32), 7, np.uint8), 100 + ramp // 16
    assert [*map(images_to_predict.pixel_flags, pictures)] == [[], ["constant"], ["low contrast"]]


def test_an_image_is_far_away_if_it_is_so_from_every_site():
    rng = np.random.default_rng(0)
    sites = {name: statistics_of(rng.normal(at, 1, (500, 8))) for name, at in (("a", 0), ("b", 9))}
    images = np.array([[0.0] * 8, [9.0] * 8, [30.0] * 8])
    for known, far in ((sites, [0, 0, 1]), ({"a": sites["a"]}, [0, 1, 1]), ({}, [0, 0, 0])):
        assert far_from_training(images, known).tolist() == far


@pytest.mark.parametrize("lie", [
    {"limit": 1e308}, {"limit": 100.0}, {"variance": [1e300] * 8}, {"variance": [1e9] * 8},
    {"mean": [0.0] * 7, "variance": [1.0] * 7}, {"variance": [1e9] * 8, "limit": 100.0},
])  # fmt: skip
def test_no_sites_statistics_alone_make_a_stranger_familiar(lie):
    rng = np.random.default_rng(0)
    sites = {name: statistics_of(rng.normal(0, 1, (500, 8))) for name in "abc"}
    images, sites["liar"] = np.array([[0.0] * 8, [30.0] * 8]), {**sites["a"], **lie}
    assert far_from_training(images, sites).tolist() == [False, True]
