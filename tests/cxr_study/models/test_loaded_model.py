import gc
import json
import math
import re
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cxr_study import load_model
from cxr_study.data.images.decoding import decode
from cxr_study.models import images_to_predict
from cxr_study.models.calibration_file import CalibrationError
from cxr_study.models.loaded_model import choose
from dicom_files import dataset, written
from rounding import last_places
from surgical_aggregation.checkpoints.checkpoint import load, save
from tiny_model import CLASSES, SIZE, picture, saved

README = Path(__file__).parents[3] / "README.md"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a model and a few images."""
    home = tmp_path_factory.mktemp("home")
    saved(home / "best.npz")
    picture(home / "images/a.png", seed=1)
    picture(home / "images/sub/b.jpg", (64, 80), seed=2)
    pixels = np.random.default_rng(3).integers(0, 4096, (40, 36)).astype("<u2")
    (home / "images/c").write_bytes(written(dataset(pixels)))
    (home / "images/broken.png").write_bytes(b"no picture")
    (home / "images/notes.txt").write_text("no image")
    return home


def test_five_lines_of_python_give_a_table_of_probabilities(home):
    model = load_model(home / "best.npz")
    table = model.predict([home / "images/a.png", home / "images/c"])
    assert list(table) == ["image", *CLASSES, "flags"]
    for path, (_, row) in zip(("a.png", "c"), table.iterrows(), strict=True):
        pixels = decode((home / "images" / path).read_bytes(), SIZE).pixels
        expected = model.predictions(pixels[None]).probabilities.to_numpy()[0]
        found = row[list(CLASSES)].to_numpy(np.float32)
        np.testing.assert_array_max_ulp(found, expected, last_places(model.local.model))
    assert table[list(CLASSES)].std().min() > 1e-3  # in another order they would differ


def test_the_readmes_example_does_what_it_says(home, tmp_path):
    (example,) = re.findall(r"```python\n(from cxr_study.*?)```", README.read_text(), re.DOTALL)
    assert len([line for line in example.splitlines() if line]) <= 5
    (tmp_path / "best.npz").symlink_to(home / "best.npz")
    (tmp_path / "a.png").symlink_to(home / "images/a.png")
    (tmp_path / "b.dcm").symlink_to(home / "images/c")
    command = [sys.executable, "-c", example]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "a.png" in done.stdout and "b.dcm" in done.stdout and done.stderr == ""


def test_an_unreadable_image_has_a_row_that_says_why(home):
    table = load_model(home / "best.npz").predict(home / "images")
    assert table["image"].tolist() == ["a.png", "broken.png", "c", "sub/b.jpg"]
    assert table["flags"][1].startswith("cannot be read: no readable PNG, JPEG, TIFF, JPEG 2000, ")
    assert table[list(CLASSES)].isna().to_numpy().tolist() == [[row == 1] * 3 for row in range(4)]


def test_images_are_predicted_the_same_whatever_the_chunk(home, monkeypatch):
    model = load_model(home / "best.npz")
    once = model.predict(home / "images")
    monkeypatch.setattr(images_to_predict, "CHUNK", 1)
    pd.testing.assert_frame_equal(model.predict(home / "images"), once, rtol=1e-5)


@pytest.mark.parametrize(("classes", "reason"), [
    ({}, "made for another model"),
    ({"Mass": {"curve": {"method": "platt", "slope": math.nan}}}, "should be a finite number"),
    ({"Mass": {"curve": {"method": "isotonic", "x": [0], "y": [0]}}}, "'isotonic'. Recreate it"),
])  # fmt: skip
def test_a_calibration_that_is_no_use_is_refused(home, tmp_path, classes, reason):
    save(load(home / "best.npz"), tmp_path / "best.npz")
    of = {"sites": ["a"], "threshold_rule": "f1", "created": "", "version": "", "refused": {}}
    calibration = {"model_sha256": "0", **of, "classes": classes}
    (tmp_path / "best.calibration.json").write_text(json.dumps(calibration))
    with pytest.raises(CalibrationError, match=rf"best\.calibration\.json .*{reason}"):
        load_model(tmp_path / "best.npz").predict(home / "images/a.png")
    assert len(load_model(tmp_path / "best.npz").predict(home / "images/a.png", calibrated=False))


def test_pixels_are_let_go_so_that_memory_does_not_grow(home):
    model = load_model(home / "best.npz")
    pixels = np.random.default_rng(0).integers(0, 256, (70, SIZE, SIZE)).astype(np.uint8)
    whole = model.predictions(pixels)
    some = model.predictions(replace(whole.images, rows=np.array([69, 3]))).probabilities
    expected = whole.probabilities.to_numpy()[[69, 3]]
    np.testing.assert_array_max_ulp(some.to_numpy(), expected, last_places(model.local.model))
    kept = weakref.ref(pixels)
    del pixels, whole
    gc.collect()
    assert kept() is None


def test_a_file_is_itself_and_has_no_site_and_a_folder_is_its_best_model(tmp_path):
    with pytest.raises(ValueError, match=r"best\.npz, is needed"):
        choose(tmp_path)
    file = tmp_path / "best.npz"
    file.touch()
    assert choose(file) == choose(tmp_path) == (file, None)
    with pytest.raises(ValueError, match=r"is a file.*site_best"):
        choose(file, "nih")
