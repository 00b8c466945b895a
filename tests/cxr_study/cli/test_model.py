"""`surgagg model import`, `remove-classes` and `decrypt`, as typed."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_study import load_model
from cxr_study.models import export_model
from rounding import last_places
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.wire import variables as wire
from tiny_model import hospital, ill_or_not, picture, saved
from typed import answer

COLUMN = (np.ones(2, np.float32), np.ones(1, np.float32))

surgagg = partial(answer, "model")


def test_removed_classes_are_in_a_new_file_and_a_mistake_writes_nothing(tmp_path):
    columns = dict.fromkeys(("Edema", "Lung Lesion", "Mass"), COLUMN)
    model, out = tmp_path / "best.npz", tmp_path / "without.npz"
    save(Checkpoint(wire.join({}, columns), {"head_features": 2}), model)
    before = model.read_bytes()
    assert "best.npz exists" in surgagg("remove-classes", model, "Mass", "--out", model, code=2)
    assert "got ['Hernia']" in surgagg("remove-classes", model, "Hernia", "--out", out, code=2)
    assert list(tmp_path.iterdir()) == [model]
    output = surgagg("remove-classes", model, "Lung Lesion", "Edema", "--out", out)
    assert wire.classes_of(load(out).variables) == ("Mass",)
    assert model.read_bytes() == before
    assert output.startswith(f"{out}: 1 class: Mass\nwithout Edema and Lung Lesion.")
    assert "trains it again from scratch" in output


def test_an_initial_body_is_a_new_file(tmp_path):
    model = tmp_path / "best.npz"
    model.write_bytes(b"trained for weeks")
    output = surgagg("init", model, "--backbone", "small_densenet", "--weights", "none", code=2)
    assert "needs a new file" in output and "best.npz exists. Give another name" in output
    assert model.read_bytes() == b"trained for weeks"


@pytest.fixture
def home(tmp_path):
    """A trained model of three classes, and a hospital's own of one: one body, other columns."""
    saved(tmp_path / "best.npz", round=9)
    saved(tmp_path / "mine.npz", classes=("Nodule",), seed=5)
    saved(tmp_path / "other.npz", classes=("Nodule",), seed=5, body_seed=1)
    for number in range(4):
        picture(tmp_path / f"images/{number}.png", (40 + number, 50), seed=number)
    return tmp_path


def imported(home, classes, into, out, *more, code=0):
    given = ("--classes", classes, "--into", home / into, "--out", home / out)
    return surgagg("import", home / "best.npz", *given, *more, code=code)


def predicted(model, home):
    return load_model(model).predict(home / "images").drop(columns=["image", "flags"])


def in_keras(path, home):
    """What a Keras file says of the images, which differ in size."""
    import keras

    model = keras.saving.load_model(path)
    images = [np.asarray(Image.open(f)) for f in sorted((home / "images").iterdir())]
    return np.concatenate([model.predict_on_batch(i[None])["probabilities"] for i in images])


def test_classes_that_are_kept_are_predicted_as_before(home):
    out = ("--out", home / "two.npz")
    output = surgagg("remove-classes", home / "best.npz", "--all-but", "Mass,Edema", *out)
    assert output.startswith(f"{home / 'two.npz'}: 2 classes: Edema and Mass")
    two = predicted(home / "two.npz", home)
    pd.testing.assert_frame_equal(two, predicted(home / "best.npz", home)[["Edema", "Mass"]])
    assert "without Hernia" in output


@pytest.mark.parametrize("words", [(), ("Hernia", "--all-but", "Edema")])
def test_either_what_goes_or_what_stays_is_named(home, words):
    out = ("--out", home / "two.npz")
    output = surgagg("remove-classes", home / "best.npz", *words, *out, code=2)
    assert "name the classes to remove, or those to keep" in output
    assert not (home / "two.npz").exists()


def test_imported_classes_are_predicted_as_by_their_model(home):
    out, output = home / "new.npz", imported(home, "Hernia, Edema", "mine.npz", "new.npz")
    assert "new.npz: 3 classes" in output and "own       Nodule: unchanged" in output
    assert "They are not tested on your images yet" in output
    new, own = load(out), load(home / "mine.npz")
    assert all(np.array_equal(new.variables[name], own.variables[name]) for name in own.variables)
    table = predicted(out, home)
    assert list(table) == ["Edema", "Hernia", "Nodule"]
    theirs, ours = predicted(home / "best.npz", home), predicted(home / "mine.npz", home)
    pd.testing.assert_frame_equal(table, theirs[["Edema", "Hernia"]].join(ours), atol=1e-6)
    assert "1 site (a), rounds 0 and 1; imported from model" in surgagg("show", out)


def test_another_body_is_refused_with_the_way_out(home):
    output = imported(home, "Edema", "other.npz", "new.npz", code=2)
    assert "their bodies differ in" in output and "--refit" in output
    assert not (home / "new.npz").exists()


def test_a_keras_file_gets_classes_and_keeps_its_own(home):
    out = home / "new.keras"
    answer("export", home / "mine.npz", "--to", "keras", "--out", home / "mine.keras")
    imported(home, "Mass,Edema", "mine.keras", "new.keras")
    theirs, own = predicted(home / "best.npz", home), predicted(home / "mine.npz", home)
    np.testing.assert_allclose(in_keras(out, home), own.join(theirs[["Edema", "Mass"]]), atol=1e-5)
    # and again, with the classes that it has now
    imported(home, "Hernia", "new.keras", "more.keras")
    assert in_keras(home / "more.keras", home).shape == (4, 4)
    facts = export_model.read_metadata(home / "more.keras")
    assert [*facts["imported"]] == ["Edema", "Mass", "Hernia"]
    assert {*facts["trained_by"]} == {"Nodule", "Edema", "Mass", "Hernia"}
    assert facts["model_sha256"] != export_model.read_metadata(out)["model_sha256"]
    assert "already has ['Mass']" in imported(home, "Mass", "new.keras", "x.keras", code=2)


def test_a_keras_file_from_elsewhere_gets_classes_too(home):
    import keras

    model = load_model(home / "mine.npz").local.model
    keras.Model(model.input, model.output).save(home / "raw.keras")
    output = imported(home, "Mass", "raw.keras", "new.keras", code=2)
    assert "does not name the classes that it predicts" in output and "--own-classes" in output
    imported(home, "Mass", "raw.keras", "new.keras", "--own-classes", "Nodule")
    new = keras.saving.load_model(home / "new.keras")
    kernel, _ = new.get_layer("head").get_weights()
    for k, (file, name) in enumerate((("mine.npz", "Nodule"), ("best.npz", "Mass"))):
        column = load(home / file).variables[f"head/{name}/kernel"]
        np.testing.assert_array_equal(kernel[:, k], column)
    images = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype(np.float32)
    old = keras.saving.load_model(home / "raw.keras")
    found, kept = new.predict_on_batch(images)[:, :1], old.predict_on_batch(images)
    np.testing.assert_array_max_ulp(found, kept, last_places(new))
    own = ("--own-classes", "Nodule", "--refit", "--site-files", home, "--sites", "a")
    output = imported(home, "Mass", "raw.keras", "x.keras", *own, code=2)
    assert "does not state how its input images are made" in output


def test_a_column_is_refitted_on_own_images(home):
    ill = ill_or_not(home / "data", 160)
    splits = [("train", "train", "validation", "test")[number // 4 % 4] for number in range(160)]
    of = hospital(home, splits, Mass=ill, Hernia=np.arange(160) < 5)
    out = home / "new.npz"

    def refit(classes, *more, code=0):
        return imported(home, classes, "other.npz", "new.npz", "--refit", *more, code=code)

    assert "--site-files sites --sites a" in refit("Mass", code=2)
    assert "Hernia needs 20 positive and 20 negative training" in refit("Hernia", *of, code=2)
    assert not out.exists()
    assert "Mass: fitted on 80 images of a, 27 positive" in refit("Mass", *of)
    made = load(out).manifest["classes"]["Mass"]["imported"]["refit"]
    assert made["site"] == "a" and made["auroc"] > 0.9
    table = load_model(out).predict(home / "data").set_index("image")
    predicted = table["Mass"].reindex([f"{number}.png" for number in range(160)])
    assert predicted[ill == 1].mean() > predicted[ill == 0].mean()


def test_a_site_decrypts_a_model_and_neither_the_server_nor_another_file(tmp_path):
    tenseal = pytest.importorskip("tenseal", reason="needs TenSEAL: the extra 'he'")
    from encrypted import provision
    from surgical_aggregation.encryption.ciphertext import pack

    provision(tmp_path)
    model, plain = tmp_path / "best.npz", tmp_path / "plain.npz"
    keys = {of: tmp_path / f"{of}_context.tenseal" for of in ("client", "server")}
    context = tenseal.context_from(keys["client"].read_bytes())
    hidden = [pack(tenseal.ckks_vector(context, part), part) for part in COLUMN]
    save(Checkpoint(wire.join({}, {"Mass": hidden}), {"round": 3}), model)

    def decrypt(context, code=2):
        return surgagg("decrypt", model, "--context", context, "--out", plain, code=code)

    assert "secret key" in decrypt(keys["server"])
    assert "is not an encryption context" in decrypt(model)
    assert not plain.exists()
    decrypt(keys["client"], code=0)
    opened = load(plain)
    np.testing.assert_allclose(opened.variables["head/Mass/kernel"], [1, 1], atol=1e-5)
    assert opened.manifest["round"] == 3
    plain.unlink()
    save(Checkpoint({"conv/kernel": np.zeros(1)}), model)
    assert "is not encrypted" in decrypt(keys["client"]) and not plain.exists()
