import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

import exported_runtime
from cxr_study.common.offered_data import demo_data
from cxr_study.data.images.decoding import resize_square
from cxr_study.models import export_model
from cxr_study.models.calibration_file import CalibrationError, Curve, as_json, calibration_path
from cxr_study.models.export_model import package
from cxr_study.models.loaded_model import load_model
from cxr_study.training.backbones import IMAGENET
from made_up_calibration import calibrated
from surgical_aggregation.checkpoints.checkpoint import digest, load
from tiny_model import CLASSES, SIZE, saved
from typed import answer

CHEST = demo_data().picture()
FILES = {"keras": "m.keras", "savedmodel": "m", "onnx": "m.onnx"}
SIZES = [(SIZE, SIZE), (40, 48), (23, 31), (300, 201), (600, 512)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A model, exported in all formats; 100 images of several sizes, and what it says of them."""
    home = tmp_path_factory.mktemp("home")
    model = load_model(saved(home / "best.npz", hidden=4))
    for to, name in FILES.items():
        export_model.export(model, to, home / name)
    (home / "images").mkdir()
    rng, arrays = np.random.default_rng(0), {}
    for number, (height, width) in enumerate(SIZES):
        noise = rng.integers(0, 256, (20, height, width))
        smooth = 255 * np.abs(np.sin(np.arange(20)[:, None, None] + np.arange(width) / 9))
        pixels = np.concatenate([noise[:10], np.broadcast_to(smooth[10:], noise[10:].shape)])
        arrays[str(number)] = pixels.astype(np.uint8)
        for k, image in enumerate(arrays[str(number)]):
            Image.fromarray(image).save(home / f"images/{number}-{k:02}.png")
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


@pytest.mark.parametrize(("to", "dtype"), [
    *((to, "float32") for to in FILES), ("keras", "uint8"), ("savedmodel", "uint8"),
])  # fmt: skip
def test_an_exported_model_says_what_predict_says_with_its_runtime_alone(home, to, dtype):
    folder, expected = home
    found = run(folder, to, dtype)
    assert found["classes"].tolist() == list(CLASSES)
    assert np.ptp(expected, axis=(0, 1)).min() > 0.05  # else equality would mean little
    for number, probabilities in enumerate(expected):
        np.testing.assert_allclose(found[str(number)], probabilities, atol=1e-5, rtol=0)


def test_wrong_names_and_missing_converters_are_refused_first(home, tmp_path, monkeypatch):
    model = load_model(home[0] / "best.npz")
    with pytest.raises(ValueError, match=r"onnx needs a file \.onnx"):
        export_model.export(model, "onnx", tmp_path / "m.keras")
    with pytest.raises(FileExistsError, match="needs a new file"):
        export_model.export(model, "savedmodel", tmp_path)
    monkeypatch.setattr(export_model.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"onnx and onnxruntime .*\[export\]"):
        export_model.export(model, "onnx", tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def with_constants():
    """A network with both kinds of Keras's normalisation inside, and what it says of the chest."""
    import keras
    from keras import layers

    from surgical_aggregation.site.training.local_model import LocalModel

    inputs = keras.Input((8, 8, 3))
    given = layers.Normalization(mean=[0.1, 0.2, 0.3], variance=[0.4, 0.5, 0.6])(inputs)
    carried = layers.Normalization(name="carried")(given)
    head = layers.Dense(2, activation="sigmoid", name="head")
    local = LocalModel(keras.Model(inputs, head(layers.Flatten()(carried))), ("A", "B"))
    local.assign({"carried/mean": np.arange(3), "carried/variance": 2 + np.arange(3)})
    small = np.asarray(resize_square(Image.fromarray(CHEST), 8), np.float32)[None, :, :, None]
    levels = (small / 255 - IMAGENET.mean) / IMAGENET.sd
    expected = local.outputs(levels.astype(np.float32))[1]
    from cxr_study.models.pixel_graph import with_pixel_input

    return with_pixel_input(keras.Model(local.model.input, local.model.output)), expected


@pytest.mark.parametrize("to", FILES)
def test_a_file_is_written_only_if_it_runs_and_says_the_same(with_constants, tmp_path, to):
    network, expected = with_constants
    given, out = CHEST[None].astype(np.float32), tmp_path / FILES[to]
    export_model.write_network(network, to, out, {}, (given, expected))
    assert list(tmp_path.iterdir()) == [out]
    again = tmp_path / "again" / FILES[to]
    for wrong, why in ((expected + 2e-4, "differs .* by 2.0e-04"), (expected[:, :0], "not run")):
        with pytest.raises(ValueError, match=rf"{FILES[to]} was written.*{why}"):
            export_model.write_network(network, to, again, {}, (given, wrong))
    assert not list(again.parent.iterdir())


def test_a_calibration_is_in_the_metadata_and_one_of_another_model_is_refused(tmp_path):
    file = saved(tmp_path / "best.npz")
    assert export_model.metadata(load_model(file))["calibration"] is None
    model, curve = digest(load(file).variables), Curve(slope=2, intercept=0.5)
    made = calibrated("a", of="Mass", model=model, curve=curve)
    calibration_path(file).write_text(as_json(made))
    output = answer("export", file, "--to", "keras", "--out", tmp_path / "c.keras")
    assert "The output is not calibrated" in output
    read = export_model.read_metadata(tmp_path / "c.keras")
    curve = {"method": "platt", "slope": 2.0, "intercept": 0.5}
    assert read["calibration"] == {"Mass": {"curve": curve, "threshold": 0.25}}
    saved(file, seed=1)
    with pytest.raises(CalibrationError, match="was made for another model"):
        export_model.export(load_model(file), "keras", tmp_path / "m.keras")


PROGRAM = """
import runpy, sys
for name in ("cxr_study", "surgical_aggregation", "nvflare", "pandas", "sklearn"):
    sys.modules[name] = None
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def check(folder):
    """Replay the package without this software."""
    command = [sys.executable, "-c", PROGRAM, folder / "check.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_a_package_replays_its_reference_without_this_software(tmp_path):
    model = load_model(saved(tmp_path / "best.npz"))
    out = tmp_path / "package"
    package(model, "# Card\n", out)
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "check.py", "config.json", "model.keras", "model.npz", "reference.json",
        "reference.png",
    ]  # fmt: skip
    assert json.loads((out / "config.json").read_text())["classes"] == list(CLASSES)
    assert load(out / "model.npz").manifest == model.checkpoint.manifest
    code, output = check(out)
    assert code == 0 and all(words in output for words in ("The same", *CLASSES))
    reference = json.loads((out / "reference.json").read_text())
    reference["probabilities"]["Mass"] += 0.01
    (out / "reference.json").write_text(json.dumps(reference))
    code, output = check(out)
    assert code == 1 and "NOT the same: greatest difference 1.0e-02" in output


def test_a_package_is_whole_or_not_there(tmp_path, monkeypatch):
    model = load_model(saved(tmp_path / "best.npz"))
    with pytest.raises(FileExistsError, match="needs a new folder"):
        package(model, "", tmp_path)

    monkeypatch.setattr(export_model, "save", Mock(side_effect=OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        package(model, "", tmp_path / "package")
    assert not (tmp_path / "package").exists()
