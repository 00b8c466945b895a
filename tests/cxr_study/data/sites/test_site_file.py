from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from cxr_study.data.labels.label_policy import LabelPolicy
from cxr_study.data.sites.site_file import SiteFileError, read_site_file, write_site_file

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
        assert read.site == "nih"
        assert read.labels == (tmp_path / "nih/labels.csv",)
        assert read.images == tmp_path / "nih/images"
        assert read.split == tmp_path / "sites/split.csv"

    def test_what_is_left_out_has_its_default(self, site):
        read = read_site_file(site())
        assert (read.classes, read.views, read.merges, read.distinct) == (None, "frontal", {}, ())
        assert (read.policy, read.bad_images) == (LabelPolicy("zeros", {}, "negative"), 0)

    def test_decisions_are_read(self, site):
        read = read_site_file(
            site(
                views="all",
                merges={"Effusion": ["Effusion", "fluid"]},
                distinct=["Opacity"],
                uncertain={"default": "ignore", "Effusion": "ones"},
                blank="not labelled",
                bad_images="1%",
            )
        )
        assert read.merges == {"Pleural Effusion": ("Effusion", "fluid")}
        assert (read.views, read.distinct, read.bad_images) == ("all", ("Opacity",), "1%")
        assert read.policy == LabelPolicy("ignore", {"Pleural Effusion": "ones"}, "not labelled")

    def test_one_word_is_the_policy_of_all_classes(self, site):
        assert read_site_file(site(uncertain="ones")).policy == LabelPolicy("ones")

    def test_nobody_but_the_hospital_knows_what_its_blank_cells_mean(self, site):
        assert read_site_file(site(dataset="table")).policy.blank is None
        assert read_site_file(site(dataset="table", blank="negative")).policy.blank == "negative"

    def test_labels_may_be_several_files(self, site, tmp_path):
        both = ["../nih/labels.csv", "split.csv"]
        assert read_site_file(site(labels=both)).labels == (
            tmp_path / "nih/labels.csv",
            tmp_path / "sites/split.csv",
        )

    def test_mimic_alone_needs_metadata(self, site, tmp_path):
        with pytest.raises(SiteFileError, match="dataset 'mimic' needs the key 'metadata'"):
            read_site_file(site(dataset="mimic"))
        with pytest.raises(SiteFileError, match="dataset 'nih' has no use for the key 'metadata'"):
            read_site_file(site(metadata="split.csv"))
        read = read_site_file(site(dataset="mimic", metadata="split.csv"))
        assert read.metadata == tmp_path / "sites/split.csv"

    def test_the_split_may_be_made_later(self, site, tmp_path):
        assert read_site_file(site(split="later.csv")).split == tmp_path / "sites/later.csv"

    def test_classes_are_canonical_in_the_order_of_the_file(self, site):
        assert read_site_file(site(classes=["mass", "Effusion"])).classes == (
            "Mass",
            "Pleural Effusion",
        )

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"dataset": "nhi"}, "key 'dataset' needs nih, .* or table; got 'nhi'"),
            ({"dataset": ["nih"]}, r"key 'dataset' needs .*; got \['nih'\]"),
            ({"labels": "no.csv"}, r"key 'labels' needs a file that exists .*; got 'no\.csv'"),
            ({"labels": "../nih"}, "key 'labels' needs a file that exists"),
            ({"images": "../none"}, "key 'images' needs a folder that exists"),
            ({"split": 3}, "key 'split' needs a path; got 3"),
            ({"truth": "no.csv"}, "key 'truth' needs a file that exists"),
            ({"classes": "Mass"}, "key 'classes' needs a list of at least one class; got 'Mass'"),
            ({"classes": []}, "key 'classes' needs a list of at least one class"),
            ({"classes": ["Mass", "MASS"]}, "key 'classes' needs each class once; got 'MASS'"),
            ({"views": "PA"}, "key 'views' needs frontal or all; got 'PA'"),
            ({"merges": {"Mass": ["a"], "mass": ["b"]}}, "key 'merges' needs each class once"),
            ({"merges": ["Mass"]}, "key 'merges' needs lines"),
            ({"uncertain": "zero"}, "key 'uncertain' needs zeros, ones, .*; got 'zero'"),
            (
                {"uncertain": {"Mass": 1}},
                "key 'uncertain', key 'Mass' needs zeros, .*; got 1",
            ),
            ({"blank": "zeros"}, "key 'blank' needs negative or not labelled; got 'zeros'"),
            ({"bad_images": -1}, "key 'bad_images' needs a number of images, or a share"),
            ({"bad_images": "101%"}, "key 'bad_images' needs a number of images, or a share"),
            ({"bad_images": True}, "key 'bad_images' needs a number of images, or a share"),
            ({"labels": []}, "key 'labels' needs a list with one entry or more"),
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
            ("blank: negative\nblank: not labelled", r"'blank' stands twice[\s\S]*line 2"),
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
        "metadata": None,
        "truth": tmp_path / "nih/labels.csv",
    }
    path = tmp_path / "sites/new.yaml"
    write_site_file(path, classes=["Mass", "Edema"], views="all", blank=None, **written)
    assert "labels: ../nih/labels.csv" in path.read_text()
    read = read_site_file(path)
    written["labels"] = (written["labels"],)
    assert {key: getattr(read, key) for key in written} == written
    assert (read.classes, read.views) == (("Mass", "Edema"), "all")
    assert "blank" not in path.read_text()
