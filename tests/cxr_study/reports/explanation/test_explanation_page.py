from types import SimpleNamespace

import keras
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_study.models.images_to_predict import ReadImage
from cxr_study.models.loaded_model import load_model
from cxr_study.reports.explanation import explanation_page
from cxr_study.reports.explanation.explanation_page import heat_maps
from cxr_study.training.input_pipeline import normalised
from html_page import Page
from tiny_model import CLASSES, SIZE, saved

NAMES = ("Edema", "Hernia", "Mass", "Nodule")
ROW = {"image": "a.png", "Edema": 0.22, "Hernia": 0.94, "Mass": 0.3, "Nodule": 0.6, "flags": ""}


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """The text of the page, and the heat over each picture; the map of Hernia is blank."""
    over = []

    def heat_maps(local, pixels, classes, how):
        return {name: np.full((2, 2), float(name != "Hernia")) for name in classes}

    def drawn(picture, heat):
        over.append(float(heat.max()))
        return Image.new("L", (1, 1))

    monkeypatch.setattr(explanation_page, "heat_maps", heat_maps)
    monkeypatch.setattr(explanation_page, "_overlay", drawn)
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    image = ReadImage("a.png", str(tmp_path / "a.png"), np.zeros((4, 4), np.uint8))

    def write(*calibrated, never=(), flags="", positive=1):
        columns = {f"{name} positive": positive for name in calibrated}
        table = pd.DataFrame([{**ROW, **columns, "flags": flags}], [7])
        classes = {name: SimpleNamespace(threshold=0.1) for name in calibrated}
        lacking = dict.fromkeys(never, "no site had a negative image")
        model = SimpleNamespace(
            classes=NAMES, local=None, file=tmp_path / "best.npz",
            calibration=SimpleNamespace(classes=classes, threshold_rule="f1", sites=("a",)),
            network=SimpleNamespace(normalisation=None, image_size=4),
            facts=SimpleNamespace(never_learned=lacking),
        )  # fmt: skip
        (path,) = explanation_page.write(model, {7: image}, table, 2, tmp_path)
        return Page(path.read_text()).text, over

    return write


def test_a_map_is_as_bright_as_its_class_is_probable_and_a_blank_one_says_why(pages):
    text, over = pages()
    assert over == [0.0, pytest.approx(0.6)]  # Hernia, Nodule
    assert text.count("No heat: no region of the image is evidence for the class.") == 1
    assert "Not calibrated" not in text


def test_calibrated_probabilities_are_not_ranked_with_raw_ones(pages):
    text, over = pages("Edema", "Mass", "Hernia")
    assert over == pytest.approx([0.0, 0.3, 0.6])  # two of the calibrated classes, one raw
    ranked = text[text.index("All classes") :]
    places = [ranked.index(f"{word} ") for word in ("Calibrated", "Hernia", "Mass", "Edema")]
    places += [ranked.index("Not calibrated"), ranked.index("Nodule")]
    assert places == sorted(places)


@pytest.mark.parametrize(("positive", "sign"), [(1, "≥"), (0, "<")])
def test_a_class_is_positive_where_the_table_says_so(pages, positive, sign):
    """The table compares in float32: a probability may be equal to its threshold there alone."""
    text, _ = pages("Edema", "Mass", positive=positive)
    assert text.count(sign) == 2


@pytest.mark.parametrize("odd", ["", "shape: 300 x 60 pixels; "])
def test_a_class_that_was_never_learned_is_marked_and_not_explained(pages, odd):
    text, over = pages(never=["Hernia"], flags=f"{odd}never learned: Hernia")
    assert over == pytest.approx([0.6, 0.3])  # Nodule and Mass
    assert "Hernia never learned: no site had a negative image" in text
    assert ("may be no frontal chest radiograph" in text) == bool(odd)


@pytest.mark.parametrize("hidden", [0, 5])
def test_the_heat_is_the_weighted_sum_of_the_pooled_maps(tmp_path, hidden):
    model = load_model(saved(tmp_path / "best.npz", hidden=hidden))
    pixels = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE)).astype(np.uint8)
    heats = heat_maps(model.local, pixels, CLASSES[:2])
    assert list(heats) == list(CLASSES[:2])
    if hidden:
        assert all(0 <= heat.min() and heat.max() <= 1 for heat in heats.values())
        return
    network = model.local.model
    to_maps = keras.Model(network.input, network.get_layer("final_pool").input)
    maps = to_maps(normalised(pixels[None]))[0].numpy()
    kernel = network.get_layer("head").get_weights()[0]
    for k, name in enumerate(CLASSES[:2]):
        expected = np.maximum(maps @ kernel[:, k], 0)  # CAM: the head's own weights
        np.testing.assert_allclose(heats[name], expected / expected.max(), atol=1e-4)
        assert np.ptp(expected) > 0
