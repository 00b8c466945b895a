import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_study.data.sites.site_file import SiteFileError
from cxr_study.evaluation.test_scores import (
    Network,
    TestSplit,
    class_aurocs,
    load_test_split,
    predict,
    score,
)
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.wire import variables as wire

UNION = ("Edema", "Fibrosis", "Hernia", "Mass")


def split(labels, held=("Edema", "Mass"), patients=None):
    labels = np.array(labels, float)
    patients = np.arange(len(labels)).astype(str) if patients is None else np.array(patients)
    pixels = np.zeros((len(labels), 2, 2), np.uint8)
    return TestSplit("nih", pd.DataFrame(), pixels, patients, labels, frozenset(held))


# Four images. Edema: 3 of 4 pairs in order, 0.75; Fibrosis: no positives; Hernia: all in order, 1;
# Mass: one image is not labelled, and of the two pairs left one is in order, 0.5.
LABELS = [[1, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, np.nan]]
SCORES = pd.DataFrame(
    {
        "Mass": [0.5, 0.6, 0.1, 0.9],
        "Edema": [0.9, 0.1, 0.3, 0.4],
        "Hernia": [0.9, 0.1, 0.2, 0.3],
        "Fibrosis": [0.1, 0.2, 0.3, 0.4],
    }
)


class TestClassAurocs:
    def test_every_class_of_the_union_has_its_own_columns_or_is_not_defined(self):
        assert class_aurocs(split(LABELS), SCORES, UNION) == {
            "Edema": 0.75,
            "Fibrosis": None,
            "Hernia": 1.0,
            "Mass": 0.5,
        }

    def test_a_class_that_the_model_lacks_is_not_defined(self):
        found = class_aurocs(split(LABELS), SCORES[["Mass"]], UNION)
        assert found == {"Edema": None, "Fibrosis": None, "Hernia": None, "Mass": 0.5}


class TestScore:
    def test_every_class_is_scored_by_its_own_column_whatever_the_order(self):
        rows, _ = score("global", split(LABELS), SCORES, UNION, seed=0)
        assert [row.class_name for row in rows] == list(UNION)
        assert [row.auroc for row in rows] == [0.75, None, 1.0, 0.5]
        assert [(row.positives, row.negatives) for row in rows] == [(2, 2), (0, 4), (1, 3), (1, 2)]

    def test_a_row_says_whose_model_site_and_labels(self):
        rows, _ = score("own", split(LABELS), SCORES, UNION, seed=0)
        assert {(row.model, row.site) for row in rows} == {("own", "nih")}
        assert [(row.held, row.labels) for row in rows] == [
            (True, "site"),
            (False, "truth"),
            (False, "truth"),
            (True, "site"),
        ]

    def test_means_are_over_the_classes_that_are_defined(self):
        _, means = score("global", split(LABELS), SCORES, UNION, seed=0)
        found = {mean.classes: (mean.auroc, mean.defined, mean.of) for mean in means}
        assert found == {"all": (0.75, 3, 4), "held": (0.625, 2, 2), "lacked": (1.0, 1, 2)}

    def test_a_class_that_the_model_lacks_is_not_defined(self):
        own = SCORES[["Edema", "Mass"]]
        rows, means = score("own", split(LABELS), own, UNION, seed=0)
        assert [row.auroc for row in rows] == [0.75, None, None, 0.5]
        assert rows[2].positives == 1
        lacked = next(mean for mean in means if mean.classes == "lacked")
        assert (lacked.auroc, lacked.low, lacked.defined, lacked.of) == (None, None, 0, 2)

    def test_a_site_that_holds_every_class_lacks_none(self):
        _, means = score("global", split(LABELS, held=UNION), SCORES, UNION, seed=0)
        assert [mean.classes for mean in means] == ["all", "held"]

    def test_intervals_hold_the_value_and_resample_patients(self):
        rng = np.random.default_rng(0)
        labels = np.repeat((np.arange(40) % 2)[:, None], 1, axis=1)
        scores = pd.DataFrame({"Edema": labels[:, 0] + rng.normal(size=40)})
        alone = score("global", split(labels), scores, ("Edema",), seed=1)
        (row,), means = alone
        assert 0 < row.low < row.auroc < row.high <= 1
        assert (means[0].low, means[0].high) == (row.low, row.high)
        assert score("global", split(labels), scores, ("Edema",), seed=1) == alone
        families = split(labels, patients=np.arange(40) // 10)
        (wide,), _ = score("global", families, scores, ("Edema",), seed=1)
        assert (wide.low, wide.high) != (row.low, row.high)

    def test_not_defined_has_no_interval(self):
        rows, _ = score("global", split(LABELS), SCORES, UNION, seed=0)
        assert (rows[1].low, rows[1].high) == (None, None)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of four patients that labels Edema and Mass; the truth says otherwise of Edema."""
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "images").mkdir()
    for number, name in enumerate(["a.png", "b.png", "c.png", "d.png"]):
        pixels = np.array([[number, 255], [255, 255]], np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / name)
    (tmp_path / "labels.csv").write_text(
        "Image Index,Finding Labels,Patient ID,Patient Age,Patient Gender,View Position\n"
        "a.png,No Finding,1,50,F,PA\n"
        "b.png,Edema|Hernia,2,50,F,PA\n"
        "c.png,Mass,3,50,F,PA\n"
        "d.png,No Finding,4,50,F,PA\n"
    )
    (tmp_path / "split.csv").write_text("patient,split\n1,train\n2,test\n3,validation\n4,test\n")
    (tmp_path / "truth.csv").write_text(
        "image,Hernia,Edema,Mass\nd.png,1,1,1\na.png,0,1,1\nb.png,0,0,0\nc.png,0,0,0\n"
    )
    keys = "dataset: nih\nlabels: labels.csv\nimages: images\nsplit: split.csv\n"

    def write(more="truth: truth.csv\n"):
        path = tmp_path / "mayo.yaml"
        path.write_text(keys + "classes: [Mass, Edema]\n" + more)
        return path

    return write


class TestLoadTestSplit:
    def test_it_holds_the_test_images_in_the_tables_order(self, site):
        loaded = load_test_split(site(), UNION, size=2)
        assert (loaded.site, loaded.held) == ("mayo", {"Edema", "Mass"})
        assert loaded.pixels[:, 0, 0].tolist() == [1, 3]
        assert loaded.patients.tolist() == ["2", "4"]
        assert loaded.table["split"].tolist() == ["train", "test", "validation", "test"]

    def test_truth_is_for_the_classes_that_the_site_does_not_label(self, site):
        labels = load_test_split(site(), UNION, size=2).labels
        np.testing.assert_array_equal(labels, [[1, np.nan, 0, 0], [0, np.nan, 1, 0]])

    def test_own_labels_stand_even_where_they_are_missing_or_smoothed(self, site, monkeypatch):
        from cxr_study.evaluation import test_scores

        def load(site_file):
            labels = original(site_file)
            labels.table["Edema"] = [0.7, np.nan, np.nan, 0.7]
            return labels

        original = test_scores.load_labels
        monkeypatch.setattr(test_scores, "load_labels", load)
        assert np.isnan(load_test_split(site(), UNION, size=2).labels[:, 0]).all()

    def test_without_truth_they_are_not_known(self, site):
        labels = load_test_split(site(more=""), UNION, size=2).labels
        np.testing.assert_array_equal(labels, [[1, np.nan, np.nan, 0], [0, np.nan, np.nan, 0]])

    def test_a_truth_without_images_is_refused(self, site, tmp_path):
        (tmp_path / "truth.csv").write_text("file,Hernia\nb.png,1\n")
        with pytest.raises(SiteFileError, match=r"mayo\.yaml: key 'truth': .* has file, Hernia"):
            load_test_split(site(), UNION, size=2)

    @pytest.mark.parametrize("value", ["-1", "2", "yes"])
    def test_a_truth_that_is_not_0_or_1_is_refused(self, site, tmp_path, value):
        (tmp_path / "truth.csv").write_text(f"image,Hernia\nb.png,{value}\n")
        with pytest.raises(SiteFileError, match=r"need to be 0, 1 or blank; the column 'Hernia'"):
            load_test_split(site(), UNION, size=2)


@pytest.mark.parametrize("own", [False, True])
def test_predictions_are_the_networks_in_the_checkpoints_class_order(own, tmp_path):
    """Of a global model, and of one that a site keeps for itself."""
    from cxr_study.training.input_pipeline import dataset
    from cxr_study.training.network import build
    from surgical_aggregation.site.contract.architecture import initial_body

    model = build("small_densenet", 2, image_size=32)
    features = model.get_layer("head").kernel.shape[0]
    columns = {
        name: (np.full(features, 0.01 * k, np.float32), np.float32([k]))
        for k, name in enumerate(["Mass", "Edema", "Hernia"], start=1)
    }
    body = initial_body(model).variables
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32)).astype(np.uint8)
    network = Network("small_densenet", 32, hidden=0)
    if own:
        manifest = {"head_features": features, "site": "nih", "round": 3}
        save(Checkpoint(wire.join(body, columns), manifest), tmp_path / "site_best.npz")
        checkpoint = load(tmp_path / "site_best.npz")
    else:
        checkpoint = Checkpoint(wire.join(body, columns))
    predicted = predict(checkpoint, network, pixels)

    import keras

    layer = keras.Model(model.inputs, model.get_layer("head").input)
    seen = layer.predict(dataset(pixels, np.zeros((3, 1)), batch_size=3), verbose=0)
    assert list(predicted.columns) == ["Edema", "Hernia", "Mass"]
    for name, (kernel, bias) in columns.items():
        expected = 1 / (1 + np.exp(-(seen @ kernel + bias)))
        np.testing.assert_allclose(predicted[name], expected, rtol=1e-5)
