from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from PIL import Image

from cxr_study.common.errors import InputError
from cxr_study.evaluation.scores import evaluate_site
from cxr_study.evaluation.test_split import load

NAN = np.nan
NETWORK = SimpleNamespace(image_size=4)


@pytest.fixture
def site(cache, tmp_path):
    """A function that writes a site of five patients, two of them for tests; one has two images."""
    (tmp_path / "images").mkdir()
    for number, name in enumerate("abcdef"):
        pixels = np.full((4, 4), 255, np.uint8)
        pixels[0, 0] = number
        Image.fromarray(pixels).save(tmp_path / f"images/{name}.png")
    (tmp_path / "labels.csv").write_text(
        "image,patient,view,sex,age,Mass,Edema,Hernia\n"
        "f.png,001,PA,F,50,0,0,0\ne.png,002,AP,M,60.5,-1,1,0\nd.png,003,PA,,,1,0,0\n"
        "c.png,002,PA,M,61,1,,0\nb.png,004,PA,F,40,0,1,1\na.png,005,PA,F,40,0,1,1\n"
    )
    rows = "001,train\n002,test\n003,validation\n004,test\n005,train\n"
    (tmp_path / "split.csv").write_text(f"patient,split\n{rows}")

    def write(**keys):
        keys = {
            "dataset": "table", "labels": "labels.csv", "images": "images", "split": "split.csv",
            "blank": "not labelled", "classes": ["Mass", "Edema"], **keys,
        }  # fmt: skip
        (tmp_path / "mayo.yaml").write_text(yaml.safe_dump(keys))
        return tmp_path / "mayo.yaml"

    return write


def test_the_test_split_has_all_facts_and_the_pixels_of_each_image(site, tmp_path):
    others = "\n".join(f"00{number},unused" for number in (1, 2, 3))
    (tmp_path / "few.csv").write_text(f"patient,split\n004,test\n005,test\n{others}\n")
    load(site(split="few.csv"), ["Edema"], 4)  # other images are decoded first
    test = load(site(), ["Edema", "Mass", "Nodule"], 4)
    assert list(test.table) == ["image", "patient", "view", "sex", "age", "Edema", "Mass"]
    assert test.table.astype(object).where(test.table.notna(), None).values.tolist() == [
        ["e.png", "002", "AP", "M", 60.5, 1, 0],
        ["c.png", "002", "PA", "M", 61, None, 1],
        ["b.png", "004", "PA", "F", 40, 1, 0],
    ]
    assert (test.rows.dtype, test.pixels[test.rows][:, 0, 0].tolist()) == (np.int64, [4, 2, 1])
    smoothed = load(site(uncertain="smooth-ones"), ["Mass"], 4).table
    np.testing.assert_array_equal(smoothed["Mass"], [NAN, 1, 0])


def test_without_a_global_model_nothing_is_measured(site):
    found = evaluate_site(site(), {}, ["Edema", "Mass"], SimpleNamespace(network=NETWORK), 0)
    assert [row.auroc for row in found.test] == [None, None]
    assert [(row.class_name, row.positives, row.negatives) for row in found.test] == [
        ("Edema", 2, 0), ("Mass", 1, 2),
    ]  # fmt: skip
    assert {mean.auroc for mean in found.means} == {None} and found.data.images.test == 3
    assert not found.subgroups and not found.calibration and found.predictions is None


def test_an_image_that_cannot_be_used_is_left_out(site, tmp_path):
    (tmp_path / "images/e.png").unlink()
    test = load(site(bad_images=1), ["Mass"], 4)
    assert test.table["image"].tolist() == ["c.png", "b.png"]
    assert test.pixels[test.rows][:, 0, 0].tolist() == [2, 1]


@pytest.fixture
def truth(site, tmp_path):
    """A function that reads the test split with labels kept for evaluation only."""
    path, union = site(truth="truth.csv"), ["Edema", "Hernia", "Mass", "Nodule"]
    return lambda text: (tmp_path / "truth.csv").write_text(text) and load(path, union, 4)


def test_labels_for_evaluation_are_of_the_classes_that_the_site_does_not_label(truth):
    split = truth("image,Hernia,Edema\nb.png,1,0\nc.png,1,1\n")
    assert (split.site, split.labelled) == ("mayo", {"Edema", "Mass"})
    assert list(split.table.columns[5:]) == ["Edema", "Hernia", "Mass"]
    labels = [[1, NAN, NAN], [NAN, 1, NAN], [1, 1, NAN]]
    np.testing.assert_array_equal(split.labels(["Edema", "Hernia", "Nodule"]), labels)


def test_labels_for_evaluation_are_read_as_the_labels_are(site, tmp_path):
    path = site(truth="truth.csv", words={"ja": "1"}, encoding="cp1252")
    union = ["Pleural Thickening", "Größe"]
    for encoding in ("utf-8", "cp1252"):
        rows = f"{tmp_path}/images/b.png;JA;0.0;PA\n.\\c.png;0;;\n"
        text = f"image;pleural_thickening;Größe;view\n{rows}"
        (tmp_path / "truth.csv").write_bytes(text.encode(encoding))
        split = load(path, union, 4)
        np.testing.assert_array_equal(split.labels(union), [[NAN, NAN], [0, NAN], [1, 0]])


@pytest.mark.parametrize(("text", "message"), [
    ("file,Hernia\nb.png,1\n", r"mayo\.yaml: key 'truth': .*truth\.csv, .*needs a column 'image'"),
    ("image,Hernia\nb.png,-1\n", r"truth\.csv, line 2, column 'Hernia': needs 1, 0 or a blank"),
    ("image,Hernia\nb.png,yes\n", r"truth\.csv, line 2, column 'Hernia': .*got 'yes'"),
    ("image,Hernia\nb.png,1\n./b.png,1\n", r"truth\.csv, line 3, column 'image': 'b.png' is alr"),
    ("image,Hernia\na.png,1\n", r"none of the 3 test images, first e\.png, but 1 others, first a"),
    ("image,age\nb.png,1\n", "needs a column for every class"),
])  # fmt: skip
def test_unusable_labels_for_evaluation_are_refused(truth, text, message):
    with pytest.raises(InputError, match=message):
        truth(text)
