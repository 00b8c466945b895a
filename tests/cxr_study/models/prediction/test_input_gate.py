import numpy as np
import pytest
from PIL import Image

from cxr_study.models.prediction.input_gate import far_away, of_file, of_pixels
from dicom_files import dataset, written
from surgical_aggregation.aggregation.feature_statistics import statistics_of
from tiny_model import picture


@pytest.mark.parametrize(("elements", "flags"), [
    ({}, []),
    ({"Modality": "DX", "ViewPosition": "PA", "BodyPartExamined": "CHEST"}, []),
    ({"Modality": "CT"}, ["modality CT"]),
    ({"Modality": "CR", "ViewPosition": "LL"}, ["view LL"]),
    ({"BodyPartExamined": "HAND"}, ["body part HAND"]),
    ({"SeriesDescription": "Thorax LAT"}, ["view LATERAL"]),
    ({"PresentationIntentType": "FOR PROCESSING"}, ["for processing, not for presentation"]),
    ({"WindowCenter": 7, "WindowWidth": 0}, ["window width 0"]),
])  # fmt: skip
def test_a_dicom_header_tells_what_is_no_frontal_chest_radiograph(tmp_path, elements, flags):
    (tmp_path / "a.dcm").write_bytes(written(dataset(np.ones((40, 40), np.uint16), **elements)))
    assert of_file(tmp_path / "a.dcm", 32) == flags


def test_colour_size_and_shape_of_a_picture_are_told(tmp_path):
    assert of_file(picture(tmp_path / "grey.png"), 32) == []
    assert of_file(picture(tmp_path / "small.png", (31, 40)), 32) == ["small: 31 x 40 pixels"]
    assert of_file(picture(tmp_path / "wide.png", (200, 40)), 32) == ["shape: 200 x 40 pixels"]
    grey = np.asarray(Image.open(tmp_path / "grey.png"))
    Image.fromarray(np.stack([grey] * 3, axis=2)).save(tmp_path / "grey.jpg")
    assert of_file(tmp_path / "grey.jpg", 32) == []  # grey, though stored in colours
    Image.fromarray(np.stack([grey, grey // 2, grey], axis=2)).save(tmp_path / "colour.jpg")
    assert of_file(tmp_path / "colour.jpg", 32) == ["colour"]


def test_pixels_without_contrast_are_told():
    ramp = np.linspace(0, 255, 32 * 32).reshape(32, 32).astype(np.uint8)
    assert of_pixels(ramp) == []
    assert of_pixels(np.full((32, 32), 7, np.uint8)) == ["constant"]
    assert of_pixels(100 + ramp // 16) == ["low contrast"]


def test_an_image_is_far_away_if_it_is_so_from_every_site():
    rng = np.random.default_rng(0)
    sites = {name: statistics_of(rng.normal(at, 1, (500, 8))) for name, at in (("a", 0), ("b", 9))}
    images = np.array([[0.0] * 8, [9.0] * 8, [30.0] * 8])
    assert far_away(images, sites).tolist() == [False, False, True]
    assert far_away(images, {"a": sites["a"]}).tolist() == [False, True, True]
    assert far_away(images, {}).tolist() == [False, False, False]


@pytest.mark.parametrize(
    "lie",
    [
        {"limit": 1e308}, {"limit": 100.0}, {"variance": [1e300] * 8}, {"variance": [1e9] * 8},
        {"mean": [0.0] * 7, "variance": [1.0] * 7}, {"variance": [1e9] * 8, "limit": 100.0},
    ],
)  # fmt: skip
def test_no_sites_statistics_alone_make_a_stranger_familiar(lie):
    rng = np.random.default_rng(0)
    sites = {name: statistics_of(rng.normal(0, 1, (500, 8))) for name in "abc"}
    images, sites["liar"] = np.array([[0.0] * 8, [30.0] * 8]), {**sites["a"], **lie}
    assert far_away(images, sites).tolist() == [False, True]
