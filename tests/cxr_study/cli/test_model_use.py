"""`surgagg predict`, `model show` and `model calibrate`, as typed."""

import json
import os
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cxr_phantom.demo_data import PRETRAINED_BODY
from cxr_study.data.images.bit_depth import LEAST
from cxr_study.models import export_model
from cxr_study.models.calibration_file import as_json
from cxr_study.models.loaded_model import LoadedModel, load_model
from cxr_study.reports.card import model_card
from deep_pictures import png_16
from made_up_calibration import calibrated
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load, save
from tiny_model import CLASSES, hospital, ill_or_not, picture, saved
from typed import answer, typed

NEWER = "split.csv is newer than the model, which a trained."


@pytest.fixture
def home(tmp_path):
    picture(tmp_path / "images/a.png", seed=1)
    picture(tmp_path / "images/b.png", (300, 60), seed=2)
    (tmp_path / "images/broken.png").write_bytes(b"no picture")
    saved(tmp_path / "best.npz")
    return tmp_path


def test_images_are_predicted_flagged_explained_and_bad_ones_listed(home):
    out = home / "out/p.csv"
    output = answer("predict", home / "best.npz", home / "images", "--out", out, "--explain", 2)
    table = pd.read_csv(out, keep_default_na=False)
    assert list(table) == ["image", *CLASSES, "flags"]
    rows = [["a.png", ""], ["b.png", "shape: 300 x 60 pixels"]]
    assert table[["image", "flags"]].to_numpy().tolist() == rows
    refused = '"no readable PNG, JPEG, TIFF, JPEG 2000, WebP, BMP or DICOM"'
    assert (home / "out/p.problems.csv").read_text() == f"image,problem\nbroken.png,{refused}\n"
    pages = sorted(path.name for path in (home / "out/p-explained").iterdir())
    assert pages == ["0-a.png.html", "1-b.png.html"]
    text = (home / "out/p-explained/1-b.png.html").read_text()
    top = table.iloc[1][list(CLASSES)].astype(float).nlargest(2)
    for name, probability in top.items():
        assert f"<span>{name}</span><span>{100 * probability:.1f} %</span>" in text
    assert text.count("Heat map of the evidence for") == 2 and text.count("data:image/jpeg") == 2
    assert "shape: 300 x 60 pixels" in text
    for line in ("2 images", "flagged      1 (1 shape)", "skipped      1, first broken.png", "no;"):
        assert line in output
    (home / "images/broken.png").unlink()
    again = typed("predict", home / "best.npz", home / "images", "--out", out)
    assert again.code == 2 and "--force" in again.err
    answer("predict", home / "best.npz", home / "images", "--out", out, "--force")
    assert not (home / "out/p.problems.csv").exists()


def test_the_table_reads_back_bit_for_bit_and_an_interruption_leaves_the_old_one(home, monkeypatch):
    out, command = home / "p.csv", ("predict", home / "best.npz", home / "images", "--force")
    answer(*command, "--out", out)
    found = load_model(home / "best.npz").predict(home / "images").drop(2)
    read = pd.read_csv(out, dtype=dict.fromkeys(CLASSES, np.float32), keep_default_na=False)
    pd.testing.assert_frame_equal(read, found, check_dtype=False, rtol=0, atol=0)
    old, whole = out.read_bytes(), LoadedModel.predict_chunks

    def interrupted(*args, **how):
        yield next(whole(*args, **how))
        raise KeyboardInterrupt

    monkeypatch.setattr(LoadedModel, "predict_chunks", interrupted)
    assert typed(*command, "--out", out).code == 130
    assert out.read_bytes() == old and not list(home.glob(".p*"))


def test_a_class_that_was_never_learned_is_reported_at_the_end_and_in_every_row(home):
    model = load(home / "best.npz")
    classes = {"Edema": {"sites": ["a"], "lacking": {"a": "negative"}}}
    save(Checkpoint(model.variables, {**model.manifest, "classes": classes}), home / "best.npz")
    output = answer("predict", home / "best.npz", home / "images", "--out", home / "p.csv")
    assert "never learned  Edema: no site had a negative image" in output
    assert "flagged      1 (1 shape)" in output
    flags = pd.read_csv(home / "p.csv")["flags"].tolist()
    assert flags == ["never learned: Edema", "shape: 300 x 60 pixels; never learned: Edema"]
    assert "never learned" in answer("model", "show", home / "best.npz")


def test_16_bit_pictures_take_the_bits_of_their_sites_file(home):
    values = np.linspace(0, 2**14 - 1, 40 * 40).reshape(40, 40)
    (home / "images/0.png").write_bytes(png_16(values))
    hospital(home, ["train"], "images", Mass=[1])
    file, without = home / "a.yaml", (home / "a.yaml").read_text()
    file.write_text(f"{without}bits: 14\n")
    asked = ("predict", home / "best.npz", home / "images/0.png", "--force", "--out")
    assert "1 (1 14-bit values in a 16-bit PNG)" in answer(*asked, home / "p.csv")
    assert "flagged" not in answer(*asked, home / "p.csv", "--site-file", file)
    assert "14-bit" not in answer("data", "prepare", file, "--size", 8)
    file.write_text(without)
    assert "14-bit values" in answer("data", "prepare", file, "--size", 8)


def test_16_bit_pictures_of_a_site_file_without_bits_are_read_as_a_run_reads_them(cache, home):
    for number in range(LEAST):
        values = np.linspace(number, 2**12 - 1, 40 * 40).reshape(40, 40)
        (home / f"images/{number}.png").write_bytes(png_16(values))
    hospital(home, ["train"] * LEAST, "images", Mass=[1] * LEAST)
    image, out = home / "images/0.png", home / "p.csv"
    asked = ("predict", home / "best.npz", image, "--force", "--out", out)
    assert "12-bit values" in answer(*asked)
    assert "flagged" not in answer(*asked, "--site-file", home / "a.yaml")


def test_mistakes_are_reported_before_anything_is_written(home):
    def predict(*arguments):
        return answer("predict", *arguments, code=2)

    out = ("--out", home / "p.csv")
    assert "does not exist" in predict(home / "best.npz", home / "nothing.png", *out)
    assert "is neither" in predict(home / "nothing", home / "images", *out)
    assert "need a file .csv" in predict(home / "best.npz", home / "images", "--out", home / "p.x")
    bad = predict(home / "best.npz", home / "images/broken.png", *out)
    assert "no image could be predicted" in bad
    output = answer("model", "evaluate", home / "best.npz", "--sites", "a", code=2)
    assert "labelled images need --site-files <folder of <site>.yaml> for real data" in output
    wrong = ("--sensitivity", 90)  # the first mistake of two
    assert "a sensitivity above 0" in answer("model", "calibrate", home / "none", *wrong, code=2)
    left = sorted(path.name for path in home.iterdir())
    assert left == ["best.npz", "images", "p.csv", "p.problems.csv"]


def test_a_calibration_is_made_next_to_the_model_and_used(home):
    ill = ill_or_not(home / "data", 120)
    splits = ["validation"] * 110 + ["test"] * 10
    of = hospital(home, splits, Mass=ill, Hernia=np.arange(120) < 3)
    model, out = home / "best.npz", home / "p.csv"
    before = model.read_bytes()
    output = answer("model", "calibrate", model, *of, "--sensitivity", 0.9)
    assert "best.calibration.json: 1 class" in output and NEWER in output
    assert "Hernia: not calibrated; 20 positive and 20 negative images are needed" in output
    assert "Not calibrated, without a label here: Edema." in output and "ECE after" in output
    assert model.read_bytes() == before
    again = typed("model", "calibrate", model, *of)
    assert again.code == 2 and "has a calibration" in again.err and "--force" in again.err
    answer("model", "calibrate", model, *of, "--sensitivity", 0.9, "--force")
    made = json.loads((home / "best.calibration.json").read_text())
    assert made["sites"] == ["a"] and made["classes"]["Mass"]["images"] == 110
    output = answer("predict", model, home / "data", "--out", out)
    assert "1 of 3 classes, on a; thresholds by sensitivity 0.9" in output
    table = pd.read_csv(out).set_index("image")
    answer("predict", model, home / "data", "--out", out, "--raw", "--force")
    raw = pd.read_csv(out).set_index("image")
    assert list(raw) == [*CLASSES, "flags"]
    assert (table["Mass"] - raw["Mass"]).abs().max() > 0.01
    assert table["Edema"].equals(raw["Edema"])
    assert made["classes"]["Mass"]["test_specificity"][0] is not None
    threshold = made["classes"]["Mass"]["threshold"]
    assert (table["Mass positive"] == (table["Mass"] >= threshold)).mean() > 0.99
    validation = [f"{number}.png" for number in range(110)]
    assert table["Mass positive"][validation][ill[:110] == 1].mean() >= 0.9
    assert "--sites a,b" in answer("model", "calibrate", model, "--site-files", home, code=2)


def test_a_card_that_was_written_before_the_calibration_is_not_packaged(home, monkeypatch):
    def package(loaded, card, out):
        out.mkdir()
        (out / "README.md").write_text(card)

    monkeypatch.setattr(export_model, "package", package)
    model = home / "best.npz"
    loaded = load_model(model)
    source = model_card.CardSource("m", loaded.facts)
    model_card.write(source, home)
    answer("model", "package", model, "--out", home / "before")
    calibration = calibrated("a", of="Mass", model=digest(loaded.checkpoint.variables))
    (home / "best.calibration.json").write_text(as_json(calibration))
    output = answer("model", "package", model, "--out", home / "after", code=2)
    assert "model_card.md needs to state the model's calibration" in output
    assert not (home / "after").exists()
    model_card.write(replace(source, calibration=calibration, chest=True), home)
    answer("model", "package", model, "--out", home / "after")
    card = (home / "after/README.md").read_text()
    assert "Calibrated on the validation split of a" in card
    assert 'load_model("model.npz")' in card  # the checkpoint's name in a package


def test_show_says_what_the_model_is_and_what_an_older_one_lacks(home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    saved(
        home / "full.npz", created="2026-01-01", version="1", strategy="fedbn+",
        initial_body_sha256="abc", validation={"round": 1, "auroc": {"a": {"Mass": 0.5}}},
    )  # fmt: skip
    output = answer("model", "show", home / "full.npz")
    assert "Not recorded" not in output
    for text in ("tiny_densenet, no hidden layer", "32 x 32", "fedbn+", "rounds 0 and 1", "0.500"):
        assert text in output
    output = answer("model", "show", home / "best.npz")
    assert "that wrote it: the day it was made; " in output and "the AUROC per site" in output
    model = load(home / "best.npz")
    other = {**model.manifest, "input": {"resizing": [1]}}  # another application's
    save(Checkpoint(model.variables, other), home / "other.npz")
    assert re.search(r"resizing +\[1\]", answer("model", "show", home / "other.npz"))
    output = answer("model", "show", PRETRAINED_BODY)
    assert "body without a head" in output
    assert "Not recorded" not in output and "class" not in output
    facts = json.loads(answer("model", "show", home / "full.npz", "--json"))
    assert facts["classes"] == list(CLASSES) and facts["lacks"] == []
    assert facts["trained"]["Mass"]["rounds"] == [{"first": 0, "last": 1, "sites": ["a"]}]
    assert facts["network"]["input"]["normalisation"]["scale"] == 255


def test_an_evaluation_names_the_sites_classes_that_the_model_lacks(home):
    odd = np.arange(9) % 2
    for number in range(9):
        picture(home / f"data/{number}.png", seed=number)
    of = hospital(home, ["train", "validation", "test"] * 3, Masse=odd, Mass=odd, Gallstone=odd)
    output = answer("model", "evaluate", home / "best.npz", *of)
    assert "no class 'Masse'; if Mass is the same finding: merges: {Mass: [Masse]}" in output
    assert "no class 'Gallstone', and none that resembles it" in output
    assert NEWER in output
    os.utime(home / "split.csv", (0, 0))
    assert NEWER not in answer("model", "evaluate", home / "best.npz", *of)
    (home / "split.earlier-1.csv").write_text("patient,split\n2,train\n5,train\n8,test\n")
    output = answer("model", "evaluate", home / "best.npz", *of)
    assert "a: 2 of 3 test images are of patients that split.earlier-1.csv trained with" in output
