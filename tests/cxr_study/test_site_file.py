from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from cxr_study.readers import CLASSES
from cxr_study.site_file import SiteFileError, load_table, read_site_file, write_site_file
from cxr_study.split import SplitError

KEYS = {
    "dataset": "nih",
    "labels": "../nih/labels.csv",
    "images": "../nih/images",
    "split": "split.csv",
}


@pytest.fixture
def site(tmp_path):
    """A site of two patients with one image each; returns a function that writes its file."""
    (tmp_path / "nih/images").mkdir(parents=True)
    (tmp_path / "sites").mkdir()
    (tmp_path / "nih/labels.csv").write_text(
        "Image Index,Finding Labels,Patient ID,Patient Age,Patient Gender,View Position\n"
        "b.png,Mass,2,50,F,PA\n"
        "a.png,Effusion|Edema,1,60,M,AP\n"
    )
    (tmp_path / "sites/split.csv").write_text("patient,split\n1,train\n2,test\n")
    for name in ("a.png", "b.png"):
        Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "nih/images" / name)

    def write(text=None, **keys):
        path = tmp_path / "sites/nih.yaml"
        path.write_text(yaml.safe_dump(KEYS | keys) if text is None else text)
        return path

    return write


class TestReadSiteFile:
    def test_paths_are_relative_to_the_file_itself(self, site, tmp_path, monkeypatch):
        monkeypatch.chdir(site().parent)
        read = read_site_file(Path("nih.yaml"))
        assert (read.path, read.dataset, read.truth) == (tmp_path / "sites/nih.yaml", "nih", None)
        assert read.labels == tmp_path / "nih/labels.csv"
        assert read.images == tmp_path / "nih/images"
        assert read.split == tmp_path / "sites/split.csv"

    def test_classes_default_to_all_of_the_dataset(self, site):
        assert read_site_file(site()).classes == CLASSES["nih"]

    def test_classes_are_canonical_in_the_order_of_the_file(self, site):
        assert read_site_file(site(classes=["mass", "Effusion"])).classes == (
            "Mass",
            "Pleural Effusion",
        )

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"dataset": "mimic"}, "key 'dataset' needs chexpert or nih; got 'mimic'"),
            ({"dataset": ["nih"]}, r"key 'dataset' needs chexpert or nih; got \['nih'\]"),
            ({"labels": "no.csv"}, r"key 'labels' needs a file that exists .*; got 'no\.csv'"),
            ({"labels": "../nih"}, "key 'labels' needs a file that exists"),
            ({"images": "../none"}, "key 'images' needs a folder that exists"),
            ({"split": 3}, "key 'split' needs a path; got 3"),
            ({"truth": "no.csv"}, "key 'truth' needs a file that exists"),
            ({"classes": "Mass"}, "key 'classes' needs a list of at least one class; got 'Mass'"),
            ({"classes": []}, "key 'classes' needs a list of at least one class"),
            ({"classes": ["Masss"]}, "key 'classes': 'Masss' is not .*; nearest known: Mass"),
            (
                {"classes": ["Fracture"]},
                "key 'classes' needs classes that dataset 'nih' labels; got 'Fracture'",
            ),
            ({"classes": ["Mass", "MASS"]}, "key 'classes' needs each class once; got 'MASS'"),
            ({"lables": "x"}, "key 'lables' is not known; nearest known: labels"),
        ],
    )
    def test_a_wrong_key_is_refused_by_file_and_key(self, site, keys, message):
        with pytest.raises(SiteFileError, match=rf"nih\.yaml: {message}"):
            read_site_file(site(**keys))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("dataset: nih", "needs key 'labels'; has dataset"),
            ("", "needs lines 'key: value'; got None"),
            ("a: [", "cannot be read as YAML"),
        ],
    )
    def test_a_file_that_is_no_site_file_is_refused(self, site, text, message):
        with pytest.raises(SiteFileError, match=message):
            read_site_file(site(text))

    def test_a_file_that_does_not_exist_is_named(self, tmp_path):
        with pytest.raises(SiteFileError, match=r"none\.yaml does not exist"):
            read_site_file(tmp_path / "none.yaml")


def test_what_is_written_is_read(site, tmp_path):
    site()
    written = {
        "dataset": "nih",
        "labels": tmp_path / "nih/labels.csv",
        "images": tmp_path / "nih/images",
        "split": tmp_path / "sites/split.csv",
        "classes": ("Mass", "Edema"),
        "truth": tmp_path / "nih/labels.csv",
    }
    path = tmp_path / "sites/new.yaml"
    write_site_file(path, **written)
    assert "labels: ../nih/labels.csv" in path.read_text()
    read = read_site_file(path)
    assert {key: getattr(read, key) for key in written} == written


class TestLoadTable:
    def test_the_site_sees_its_own_classes_with_split_and_file(self, site, tmp_path):
        table = load_table(read_site_file(site(classes=["Mass", "Edema"])))
        assert list(table.columns[5:]) == ["Mass", "Edema", "split", "file"]
        assert table[["image", "split"]].values.tolist() == [["b.png", "test"], ["a.png", "train"]]
        assert table[["Mass", "Edema"]].values.tolist() == [[1, 0], [0, 1]]
        assert table.loc[0, "file"] == str(tmp_path / "nih/images/b.png")

    def test_images_may_lie_deeper(self, site, tmp_path):
        deeper = tmp_path / "nih/images/images_001/images"
        deeper.mkdir(parents=True)
        (tmp_path / "nih/images/a.png").rename(deeper / "a.png")
        assert load_table(read_site_file(site()))["file"].tolist() == [
            str(tmp_path / "nih/images/b.png"),
            str(deeper / "a.png"),
        ]

    def test_missing_images_are_counted_and_named(self, site, tmp_path):
        (tmp_path / "nih/images/a.png").unlink()
        with pytest.raises(SiteFileError, match=r"'images': 1 of 2 .* missing .*, first a\.png\."):
            load_table(read_site_file(site()))

    def test_a_patient_without_split_is_refused_by_the_split_file(self, site, tmp_path):
        (tmp_path / "sites/split.csv").write_text("patient,split\n1,train\n")
        with pytest.raises(SplitError, match=r"split\.csv: every patient needs a split; 1 of 2"):
            load_table(read_site_file(site()))
