import re
import shutil

import pytest
import yaml
from typer.testing import CliRunner

from cxr_study.cli.main import app
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import read_split
from cxr_study.phantom.writers.write import write_phantom


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    root = tmp_path_factory.mktemp("drawn") / "phantom"
    write_phantom(root, images_per_site=200, size=16)
    return root


@pytest.fixture
def phantom(drawn, tmp_path):
    """A phantom study that a test may change."""
    return shutil.copytree(drawn, tmp_path / "phantom")


def surgagg(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def change(site_file, **keys):
    site_file.write_text(yaml.safe_dump(yaml.safe_load(site_file.read_text()) | keys))


class TestSite:
    def test_an_official_download_becomes_a_site_that_is_ready(self, phantom, tmp_path):
        site_file = tmp_path / "sites/stanford.yaml"
        result = surgagg("data", "site", "chexpert", phantom / "chexpert", site_file)
        assert result.exit_code == 0, result.output
        assert "train" in result.output and str(site_file) in result.output
        site = read_site_file(site_file)
        assert (site.site, site.dataset) == ("stanford", "chexpert")
        assert read_split(site.split).header["seed"] == 0
        assert surgagg("data", "prepare", site_file, "--size", 8).exit_code == 0

    def test_a_site_file_that_exists_stays(self, phantom):
        site_file = phantom / "sites/nih.yaml"
        before = site_file.read_text()
        result = surgagg("data", "site", "nih", phantom / "nih", site_file)
        assert result.exit_code == 2
        assert site_file.read_text() == before

    def test_a_download_without_images_leaves_no_site_file(self, phantom, tmp_path):
        shutil.rmtree(phantom / "nih/images")
        result = surgagg("data", "site", "nih", phantom / "nih", tmp_path / "a.yaml")
        assert "none of the 200 images" in str(result.exception)
        assert not (tmp_path / "a.yaml").exists()

    def test_a_site_file_needs_its_suffix(self, phantom, tmp_path):
        result = surgagg("data", "site", "nih", phantom / "nih", tmp_path / "a.txt")
        assert result.exit_code == 2

    def test_an_unknown_data_set_is_refused(self, phantom, tmp_path):
        result = surgagg("data", "site", "nhi", phantom / "nih", tmp_path / "a.yaml")
        assert result.exit_code == 2
        assert "nih" in result.output


class TestSplit:
    def test_seed_and_share_are_followed_and_written_down(self, phantom):
        site_file = phantom / "sites/nih.yaml"
        result = surgagg("data", "split", site_file, "--seed", 5, "--share", "1/4")
        assert result.exit_code == 0, result.output
        split = read_split(read_site_file(site_file).split)
        assert split.header["seed"] == 5
        assert "1/4 of the training patients used" in split.header["scheme"]
        used = split.assignment["split"].value_counts()
        assert used["train"] == pytest.approx((used["train"] + used["unused"]) / 4, abs=0.5)

    def test_the_official_lists_are_followed(self, phantom, tmp_path):
        names = sorted(path.name for path in (phantom / "nih/images").iterdir())
        patients = sorted({name[:8] for name in names})
        test = [name for name in names if name[:8] in patients[:4]]
        (tmp_path / "test.txt").write_text("\n".join(test) + "\n")
        rest = [name for name in names if name not in test]
        (tmp_path / "train_val.txt").write_text("\n".join(rest) + "\n")
        site_file = phantom / "sites/nih.yaml"
        lists = (tmp_path / "train_val.txt", tmp_path / "test.txt")
        result = surgagg("data", "split", site_file, "--nih-lists", *lists)
        assert result.exit_code == 0, result.output
        split = read_split(read_site_file(site_file).split).assignment
        tested = split["patient"][split["split"] == "test"]
        assert sorted(tested.str.zfill(8)) == patients[:4]

    @pytest.mark.parametrize("share", ["0", "2", "half", "1/0"])
    def test_a_share_that_is_none_is_refused(self, phantom, share):
        result = surgagg("data", "split", phantom / "sites/nih.yaml", "--share", share)
        assert result.exit_code == 2
        assert "above 0, at most 1" in result.output


class TestPartition:
    def test_drawn_class_sets_share_what_is_asked_for(self, phantom, tmp_path):
        out = tmp_path / "cut"
        result = surgagg(
            "data", "partition", phantom / "sites/nih.yaml", "--out", out, "--number", 3,
            "--sets", "drawn", "--shared", 2,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        labelled = [set(read_site_file(out / f"nih-{i}.yaml").classes) for i in (1, 2, 3)]
        assert len(set.intersection(*labelled)) == 2
        assert len(set.union(*labelled)) == 14
        assert surgagg("data", "prepare", *sorted(out.glob("*.yaml")), "--size", 8).exit_code == 0

    def test_published_class_sets_are_the_default(self, phantom, tmp_path):
        result = surgagg(
            "data",
            "partition",
            phantom / "sites/nih.yaml",
            "--out",
            tmp_path / "cut",
            "--share",
            "1/2",
        )
        assert result.exit_code == 0, result.output
        assert "Nodule" in result.output and "nih-2" in result.output

    def test_of_a_download_the_images_at_hand_are_cut(self, phantom, tmp_path):
        images = sorted((phantom / "nih/images").iterdir())
        for image in images[150:]:
            image.unlink()
        out = tmp_path / "cut"
        refused = surgagg("data", "partition", phantom / "nih", "--out", out, "--number", 11)
        assert "11" in str(refused.exception) and not out.exists()
        result = surgagg("data", "partition", phantom / "nih", "--out", out)
        assert result.exit_code == 0, result.output
        files = sorted(out.glob("*.yaml"))
        assert [path.name for path in files] == ["nih-1.yaml", "nih-2.yaml"]
        assert surgagg("data", "prepare", *files, "--size", 8).exit_code == 0
        assert len(read_split(out / "split.csv").assignment) > 0

    def test_a_folder_that_exists_is_refused(self, phantom):
        result = surgagg("data", "partition", phantom / "sites/nih.yaml", "--out", phantom)
        assert result.exit_code == 2


class TestPrepare:
    def test_images_are_decoded_once(self, phantom):
        files = sorted((phantom / "sites").glob("*.yaml"))
        first = surgagg("data", "prepare", *files, "--size", 8)
        assert first.exit_code == 0, first.output
        decoded = re.findall(r"([\d,]+) decoded now", first.output)
        assert decoded[1] == "200"
        again = surgagg("data", "prepare", *files, "--size", 8)
        assert re.findall(r"([\d,]+) decoded now", again.output) == ["0", "0"]

    def test_too_many_bad_images_are_exit_code_1_and_named(self, phantom):
        site_file = phantom / "sites/nih.yaml"
        image = next(iter((phantom / "nih/images").iterdir()))
        image.write_bytes(b"no picture")
        result = surgagg("data", "prepare", site_file, "--size", 8)
        assert result.exit_code == 1
        assert image.name in result.output and "bad_images" in result.output
        change(site_file, bad_images=1)
        accepted = surgagg("data", "prepare", site_file, "--size", 8)
        assert accepted.exit_code == 0
        assert f"left out: {image.name} unreadable" in accepted.output


class TestClasses:
    def test_the_union_and_its_holders_are_shown(self, phantom):
        result = surgagg("data", "classes", *sorted((phantom / "sites").glob("*.yaml")))
        assert result.exit_code == 0, result.output
        assert "Classes: 20, of which 7 at more than one site and 13 at one alone." in result.output

    def test_one_site_twice_is_refused(self, phantom):
        site_file = phantom / "sites/nih.yaml"
        assert surgagg("data", "classes", site_file, site_file).exit_code == 2

    def test_an_undecided_look_alike_is_exit_code_1_until_it_is_decided(self, phantom):
        (phantom / "own.csv").write_text("image,patient,Effusion\na.png,1,1\nb.png,2,0\n")
        own = phantom / "sites/own.yaml"
        keys = {
            "dataset": "table",
            "labels": "../own.csv",
            "images": "..",
            "split": "own_split.csv",
        }
        own.write_text(yaml.safe_dump(keys))
        files = sorted((phantom / "sites").glob("*.yaml"))
        result = surgagg("data", "classes", *files)
        assert result.exit_code == 1
        assert "merges: {Pleural Effusion: [Effusion]}" in result.output
        change(own, merges={"Pleural Effusion": ["Effusion"]})
        assert surgagg("data", "classes", *files).exit_code == 0
        change(own, merges={}, distinct=["Effusion"])
        assert surgagg("data", "classes", *files).exit_code == 0


class TestAudit:
    def test_a_page_and_what_may_be_shared_are_written(self, phantom, tmp_path):
        files = sorted((phantom / "sites").glob("*.yaml"))
        result = surgagg("data", "audit", *files, "--out", tmp_path / "a", "--size", 16)
        assert result.exit_code == 0, result.output
        page = (tmp_path / "a/audit.html").read_text()
        assert "chexpert" in page and "Support Devices" in page
        shared = [part for name in ("nih", "chexpert") for part in
                  ("--shared", tmp_path / f"a/shared/{name}.json")]  # fmt: skip
        across = surgagg("data", "audit", *shared, "--out", tmp_path / "b")
        assert across.exit_code == 0, across.output
        assert (tmp_path / "b/cross_site.html").is_file()

    def test_nothing_to_look_at_is_refused(self, tmp_path):
        assert surgagg("data", "audit", "--out", tmp_path).exit_code == 2


def test_the_phantom_is_drawn_as_asked(tmp_path):
    result = surgagg(
        "data", "phantom", tmp_path / "p", "--sites", "mimic", "--images", 150, "--size", 16,
        "--corrupt", 2,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    site_file = tmp_path / "p/sites/mimic.yaml"
    assert str(site_file) in result.output
    assert surgagg("data", "prepare", site_file, "--size", 8).exit_code == 1
