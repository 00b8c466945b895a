import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import exported_runtime
from cxr_study.models.export import export_model
from cxr_study.models.loaded_model import load_model
from tiny_model import CLASSES, SIZE, saved

FILES = {"keras": "m.keras", "savedmodel": "m", "onnx": "m.onnx"}
SIZES = [(SIZE, SIZE), (40, 48), (23, 31), (300, 201), (600, 512)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A model, exported in all formats; 100 images of several sizes, and what it says of them."""
    home = tmp_path_factory.mktemp("home")
    model = load_model(saved(home / "best.npz", hidden=4))
    for to, name in FILES.items():
        export_model.export(model, to, home / name)
    rng = np.random.default_rng(0)
    arrays = {}
    for number, (height, width) in enumerate(SIZES):
        noise = rng.integers(0, 256, (20, height, width))
        smooth = 255 * np.abs(np.sin(np.arange(20)[:, None, None] + np.arange(width) / 9))
        arrays[str(number)] = np.where(np.arange(20)[:, None, None] < 10, noise, smooth).astype(
            np.uint8
        )
        for k, pixels in enumerate(arrays[str(number)]):
            (home / "images").mkdir(exist_ok=True)
            Image.fromarray(pixels).save(home / f"images/{number}-{k:02}.png")
    np.savez(home / "images.npz", **arrays)
    return home, model.predict(home / "images")[list(CLASSES)].to_numpy().reshape(5, 20, -1)


def run(home, to, dtype="float32"):
    program = Path(exported_runtime.__file__)
    out = home / f"{to}-{dtype}.npz"
    subprocess.run(
        [sys.executable, program, to, home / FILES[to], home / "images.npz", out, dtype],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    with np.load(out) as found:
        return {name: found[name] for name in found}


@pytest.mark.parametrize(
    ("to", "dtype"),
    [*((to, "float32") for to in FILES), ("keras", "uint8"), ("savedmodel", "uint8")],
)
def test_an_exported_model_says_what_predict_says_with_its_runtime_alone(home, to, dtype):
    folder, expected = home
    found = run(folder, to, dtype)
    assert found["classes"].tolist() == list(CLASSES)
    assert np.ptp(expected, axis=(0, 1)).min() > 0.05  # else equality would mean little
    for number, probabilities in enumerate(expected):
        np.testing.assert_allclose(found[str(number)], probabilities, atol=1e-5, rtol=0)


def test_wrong_names_and_missing_converters_are_refused_before_anything_is_built(
    home, tmp_path, monkeypatch
):
    model = load_model(home[0] / "best.npz")
    with pytest.raises(export_model.ExportError, match=r"onnx needs a file \.onnx"):
        export_model.export(model, "onnx", tmp_path / "m.keras")
    with pytest.raises(FileExistsError, match="needs a new file"):
        export_model.export(model, "savedmodel", tmp_path)
    monkeypatch.setattr(export_model.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(export_model.ExportError, match=r"onnx and tf2onnx.*\[export\]"):
        export_model.export(model, "onnx", tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_export_leaves_nothing(home, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("converter")

    monkeypatch.setitem(
        export_model._TARGETS, "keras", export_model._TARGETS["keras"]._replace(write=fail)
    )
    with pytest.raises(RuntimeError, match="converter"):
        export_model.export(load_model(home[0] / "best.npz"), "keras", tmp_path / "m.keras")
    assert list(tmp_path.iterdir()) == []
