import re
import shutil
from functools import partial

import pytest
import yaml

from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import read_split
from typed import answer

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def both(phantom):
    return [phantom / "sites/chexpert.yaml", phantom / "sites/nih.yaml"]


@pytest.fixture
def nih(both):
    return both[1]


surgagg = partial(answer, "data")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(site_file, **keys):
    site_file.write_text(yaml.safe_dump(yaml.safe_load(site_file.read_text()) | keys))


class TestSite:
    def test_an_official_download_becomes_a_site_that_is_ready(self, phantom, tmp_path):
        site_file = tmp_path / "sites/stanford.yaml"
        output = surgagg("site", "chexpert", phantom / "chexpert", site_file)
        assert "train" in output and str(site_file) in output
        site = read_site_file(site_file)
        assert (site.site, site.dataset) == ("stanford", "chexpert")
        assert read_split(site.split).header["seed"] == 0
        surgagg("prepare", site_file, "--size", 8)

    @pytest.mark.parametrize(("dataset", "name", "images", "message"), [
        ("nih", "phantom/sites/nih.yaml", True, "exists"), ("nih", "a.txt", True, "<site>.yaml"),
        ("nhi", "a.yaml", True, "nih"), ("nih", "a.yaml", False, "none of the 200 images"),
    ])  # fmt: skip
    def test_a_mistake_changes_nothing(self, phantom, tmp_path, dataset, name, images, message):
        if not images:
            shutil.rmtree(phantom / "nih/images")
        before = contents(tmp_path)
        assert message in surgagg("site", dataset, phantom / "nih", tmp_path / name, code=2)
        assert contents(tmp_path) == before


class TestSplit:
    def test_seed_and_share_are_followed_and_written_down(self, nih):
        surgagg("split", nih, "--seed", 5, "--share", "1/4")
        split = read_split(read_site_file(nih).split)
        assert split.header["seed"] == 5
        assert "1/4 of the training patients used" in split.header["scheme"]
        used = split.assignment["split"].value_counts()
        assert used["train"] == pytest.approx((used["train"] + used["unused"]) / 4, abs=0.5)
        before = split.path.read_bytes()
        kept = split.path.with_name("nih_split.earlier-2.csv")
        for _ in range(2):  # the second changes nothing
            output = surgagg("split", nih, "--seed", 6)
        assert str(kept) in output.replace("\n", "") and kept.read_bytes() == before
        assert not kept.with_name("nih_split.earlier-3.csv").exists()
        kept.with_name("nih_split.earlier-1.csv").unlink()
        surgagg("split", nih, "--seed", 7)
        assert kept.read_bytes() == before  # none is written over
        for share in ("0", "2", "half", "1/0", "1e400", "1e-400"):
            assert "above 0, at most 1" in surgagg("split", nih, "--share", share, code=2)
        for ratios in ("70/30", "70/0/30", "nan/nan/nan", "1/1/inf", "1e308/1e308/1e308"):
            output = surgagg("split", nih, "--ratios", ratios, code=2)
            assert f"needs three numbers above 0, such as 70/10/20; got '{ratios}'" in output

    def test_the_official_lists_are_followed(self, phantom, nih, tmp_path):
        names = sorted(path.name for path in (phantom / "nih/images").iterdir())
        patients = sorted({name[:8] for name in names})[:4]
        lists = tmp_path / "train_val.txt", tmp_path / "test.txt"
        for file, test in zip(lists, (False, True), strict=True):
            listed = [name for name in names if (name[:8] in patients) == test]
            file.write_text("\n".join(listed) + "\n")
        surgagg("split", nih, "--nih-lists", *lists)
        split = read_split(read_site_file(nih).split).assignment
        assert sorted(split["patient"][split["split"] == "test"].str.zfill(8)) == patients
        both = ("--nih-lists", *lists, "--mimic-split", "split.csv")
        assert "exclude each other" in surgagg("split", nih, *both, code=2)


def test_images_are_decoded_once_and_too_many_bad_ones_are_exit_code_1(both, nih, phantom):
    first, again = (surgagg("prepare", *both, "--size", 8) for _ in range(2))
    assert re.findall(r"([\d,]+) decoded now", first)[1] == "200"
    assert re.findall(r"([\d,]+) decoded now", again) == ["0", "0"]
    image = next(iter((phantom / "nih/images").iterdir()))
    image.write_bytes(b"no picture")
    output = surgagg("prepare", nih, "--size", 8, code=1)
    assert image.name in output and "bad_images" in output
    change(nih, bad_images=1)
    assert f"left out: {image.name} unreadable" in surgagg("prepare", nih, "--size", 8)


def test_classes_and_sites_are_shown_and_an_undecided_look_alike_is_exit_code_1(phantom, both):
    output = surgagg("classes", *both)
    assert "Classes: 20, of which 7 at more than one site and 13 at one alone." in output
    assert "need different names" in surgagg("classes", both[0], both[0], code=2)
    (phantom / "own.csv").write_text("image,patient,Effusion\na.png,1,1\nb.png,2,0\n")
    own = phantom / "sites/own.yaml"
    own.write_text("dataset: table\nlabels: ../own.csv\nimages: ..\nsplit: own_split.csv\n")
    assert "merges: {Pleural Effusion: [Effusion]}" in surgagg("classes", *both, own, code=1)
    change(own, merges={"Pleural Effusion": ["Effusion"]})
    surgagg("classes", *both, own)
    change(own, merges={}, distinct=["Effusion"])
    surgagg("classes", *both, own)
