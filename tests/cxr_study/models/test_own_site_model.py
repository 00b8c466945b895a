"""A model of a `Site` that is about no X-rays: 8 x 8 squares, in colour, of two classes."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.site.contract.architecture import initial_body
from surgical_aggregation.wire import variables as wire
from typed import answer

SITE = '''
import numpy as np

from surgical_aggregation.site.contract.site import Site


class Squares(Site):
    """Squares that are light or red; the north labels whether they are light alone."""

    def __init__(self, site, images=120):
        super().__init__()
        self.site, self.images = site, images

    @property
    def classes(self):
        return ("light",) if self.site == "north" else ("red", "light", "soft")

    def model(self):
        import keras

        inputs = keras.Input((8, 8, 3))
        pooled = keras.layers.GlobalAveragePooling2D(name="pooled")(inputs)
        between = keras.layers.Dense(3, use_bias=False, name="between")(pooled)
        head = keras.layers.Dense(len(self.classes), activation="sigmoid", name="head")
        return keras.Model(inputs, head(between))

    def data(self, split, *, training=False, first_pass=0):
        import tensorflow as tf

        rng = np.random.default_rng(len(split))
        images = rng.normal(size=(self.images, 8, 8, 3)).astype(np.float32)
        light = rng.random(self.images) < 0.5
        images += light[:, None, None, None].astype(np.float32) / 4
        labels = {"light": light, "red": images[..., 0].mean((1, 2)) > 0.1, "soft": light / 2}
        labels = np.stack([labels[name] for name in self.classes], axis=1).astype(np.float32)
        labels[0] = np.nan
        return tf.data.Dataset.from_tensor_slices((images, labels)).batch(50)
'''
CLASSES = ("light", "red")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the site's module and a model; where the commands are typed."""
    home = tmp_path_factory.mktemp("squares")
    (home / "squares.py").write_text(SITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr(sys, "path", [str(home), *sys.path])
        patch.setenv("COLUMNS", "120")
        from squares import Squares

        body = initial_body(Squares("south").model())
        body.variables["between/kernel"] = np.eye(3, dtype=np.float32)
        light, red = np.float32([8, 8, 8]), np.float32([20, 0, 0])
        columns = {"light": (light, np.float32([-3])), "red": (red, np.float32([-2]))}
        save(Checkpoint(wire.join(body.variables, columns), body.manifest), home / "best.npz")
        yield home
    sys.modules.pop("squares", None)


OF = ("--own-site", "squares:Squares", "--arg")


def test_its_splits_are_predicted_without_looking_for_an_x_ray(home):
    answer("predict", "best.npz", "test", "--out", "p.csv", *OF, "site=north")
    table = pd.read_csv("p.csv", keep_default_na=False)
    assert list(table) == ["image", *CLASSES, "flags"] and {*table["flags"]} == {""}
    assert table["image"].tolist() == [f"test {number}" for number in range(120)]
    from squares import Squares

    images = np.concatenate([i for i, _ in Squares("north").data("test").as_numpy_iterator()])
    means = images.mean(axis=(1, 2))
    logits = np.stack([8 * means.sum(axis=1) - 3, 20 * means[:, 0] - 2], axis=1)
    np.testing.assert_allclose(table[list(CLASSES)], 1 / (1 + np.exp(-logits)), atol=1e-4)


@pytest.mark.parametrize(("words", "message"), [
    (("predict", "best.npz", "x.png", "--out", "q.csv", *OF, "site=north"), "with your own Site"),
    (("predict", "best.npz", "x.png", "--out", "q.csv"), "manifest needs backbone and image_size"),
    (("export", "best.npz", "--to", "keras"), "manifest needs backbone and image_size"),
])  # fmt: skip
def test_what_is_asked_of_x_rays_alone_is_refused(home, words, message):
    assert message in answer(*words, code=2)
    assert not (home / "q.csv").exists()


def test_it_is_measured_and_calibrated_on_the_sites_by_name(home):
    of = ("--sites", "north,south", *OF, "site={SITE_NAME}")
    output = answer("model", "evaluate", "best.npz", *of, "--out", "aurocs.csv")
    assert "south: the model has no class 'soft'" in output
    known = pd.read_csv("aurocs.csv").dropna(subset="auroc")
    names = known[["site", "class_name"]].apply(tuple, axis=1).tolist()
    assert names == [("north", "light"), ("south", "light"), ("south", "red")]
    assert known["low"].min() > 0.9 and {*known["labels"]} == {"site"}
    assert {*(known["positives"] + known["negatives"])} == {119}
    assert "best.calibration.json: 2 classes" in answer("model", "calibrate", "best.npz", *of)
    made = json.loads((home / "best.calibration.json").read_text())
    assert made["classes"]["light"]["images"] == 238 and made["sites"] == ["north", "south"]
    answer("predict", "best.npz", "validation", "--out", "c.csv", *OF, "site=south")
    assert "light positive" in pd.read_csv("c.csv")


@pytest.mark.parametrize("to", ["keras", "savedmodel", "onnx"])
def test_it_is_exported_with_the_input_of_its_network(home, tmp_path, to):
    out = tmp_path / {"keras": "m.keras", "savedmodel": "m", "onnx": "m.onnx"}[to]
    output = answer("export", "best.npz", "--to", to, "--out", out, *OF, "site=north")
    assert "input   images (images, 8, 8, 3), float32" in output and out.exists()


def test_it_is_described_and_packaged_with_a_card_of_no_x_ray(home):
    output = answer("model", "show", "best.npz")
    assert "global model" in output and "light" in output
    answer("model", "package", "best.npz", "--out", "hub", *OF, "site=north")
    card = (home / "hub/README.md").read_text().lower()
    assert not re.search("chest|x-ray|radiograph|lateral", card)
    assert "predicts 2 classes." in card
    config = json.loads((home / "hub/config.json").read_text())
    assert config["input"] == {"name": "images", "layout": "(images, 8, 8, 3)"}
    done = subprocess.run([sys.executable, "check.py"], cwd=home / "hub", capture_output=True)
    assert done.returncode == 0, done.stderr
