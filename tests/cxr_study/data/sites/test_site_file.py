from pathlib import Path

import pytest

from cxr_study.common import offered_data
from cxr_study.common.errors import InputError
from cxr_study.common.offered_data import PHANTOM, DemoData
from cxr_study.data.labels.uncertain_labels import LabelPolicy
from cxr_study.data.sites.site_file import find_site_file, read_site_file, write_site_file
from site_files import write_data, write_site
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy

OWN = {"dataset": "table"}


@pytest.fixture
def read(tmp_path):
    write_data(tmp_path)
    return lambda **keys: read_site_file(write_site(tmp_path, **{"dataset": "nih"} | keys))


def test_paths_are_relative_to_the_file_itself(read, tmp_path, monkeypatch):
    (tmp_path / "sites").mkdir()
    keys = {"images": "../images", "labels": "../labels.csv", "split": "later.csv"}
    write_site(tmp_path / "sites", "nih", **keys)
    monkeypatch.chdir(tmp_path / "sites")
    site = read_site_file(Path("nih.yaml"))
    assert (site.path, site.site, site.truth) == (tmp_path / "sites/nih.yaml", "nih", None)
    assert (site.labels, site.images) == ((tmp_path / "labels.csv",), tmp_path / "images")
    assert site.split == tmp_path / "sites/later.csv"  # made later


def test_what_is_left_out_has_its_default(read):
    site = read(blank=None)
    assert (site.classes, site.views, site.merges, site.distinct) == (None, "frontal", {}, ())
    assert (site.policy, site.bad_images) == (LabelPolicy("zeros", {}, "negative"), 0)
    assert read(dataset="mimic", metadata="split.csv").metadata.name == "split.csv"
    assert read(uncertain="ones").policy == LabelPolicy("ones")  # of all classes
    # Nobody but a hospital knows what its blank cells mean.
    assert read(dataset="table", blank=None).policy.blank is None
    assert read(dataset="table").policy.blank == "negative"


def test_decisions_are_read(read):
    site = read(
        labels=["labels.csv", "split.csv"], classes=["mass", "Effusion"], views="all",
        merges={"Effusion": ["Effusion", "fluid"]}, distinct="Opacity", blank="not labelled",
        uncertain={"default": "ignore", "Effusion": "ones"}, bad_images="1%", bits=14,
    )  # fmt: skip
    assert [path.name for path in site.labels] == ["labels.csv", "split.csv"]
    assert site.classes == ("Mass", "Pleural Effusion")
    assert site.merges == {"Pleural Effusion": ("Effusion", "fluid")}
    assert (site.views, site.distinct, site.bad_images) == ("all", ("Opacity",), "1%")
    assert (site.bits, read().bits) == (14, None)
    assert site.policy == LabelPolicy("ignore", {"Pleural Effusion": "ones"}, "not labelled")


@pytest.mark.parametrize(("keys", "message"), [
    ({"dataset": "mimic"}, "dataset 'mimic' needs the key 'metadata'"),
    ({"metadata": "split.csv"}, "dataset 'nih' does not use the key 'metadata'"),
    ({"dataset": "nhi"}, "key 'dataset': dataset must be one of .*'nih'.*; got 'nhi'"),
    ({"labels": "images"}, r"key 'labels'.* needs a file that exists; got '/.*/images'"),
    ({"images": "../none"}, "key 'images' needs a folder that exists"),
    ({"truth": "no.csv"}, "key 'truth' needs a file that exists"),
    ({"classes": "Mass"}, "key 'classes' needs a list with one entry or more; got 'Mass'"),
    ({"classes": []}, "key 'classes' needs one entry or more"),
    ({"classes": ["Mass", "MASS"]}, "key 'classes' needs each class once; got 'MASS'"),
    ({"views": "PA"}, "key 'views' needs frontal or all; got 'PA'"),
    ({"merges": {"Mass": ["a"], "mass": ["b"]}}, "key 'merges' needs each class once"),
    ({"merges": ["Mass"]}, "key 'merges' needs lines"),
    ({"uncertain": "zero"}, "key 'uncertain' needs zeros, ones, .*; got 'zero'"),
    ({"uncertain": {"Mass": 1}}, "key 'uncertain', key 'Mass' needs zeros, .*; got 1"),
    ({"uncertain": {"Effusion": "ones", "Pleural Effusion": "zeros"}},
     "key 'uncertain' needs each class once; got 'Pleural Effusion'"),
    ({"blank": "zeros"}, "key 'blank' needs negative or not labelled; got 'zeros'"),
    *(({"bad_images": bad}, "key 'bad_images' needs a number of images, or a share")
     for bad in (-1, "101%", True)),
    *(({"bits": bad}, "key 'bits' needs ") for bad in (7, 17, 12.5, True)),
    ({"labels": []}, "key 'labels' needs one entry or more"),
    ({"lables": "x"}, "key 'lables' is not known; nearest known: labels"),
    (OWN | {"columns": {"Bild": "picture"}}, "key 'Bild' needs .*age or ignored; got 'picture'"),
    (OWN | {"words": {True: 1}}, "quotes around a word that YAML reads as true or .*; got True"),
    (OWN | {"words": {"ja": "yes"}}, "key 'ja' needs one of 1, 0, -1, PA.*; got 'yes'"),
    (OWN | {"threshold": 50}, "'threshold' needs less than or equal to 1; got 50"),
    (OWN | {"findings": {"colum": "x"}}, "key 'colum' is not known; nearest known: column"),
    (OWN | {"findings": {"column": "x", "value": "x"}}, "key 'value' needs another column than"),
    ({"split": "~nobody-here/x.csv"}, "'split' needs a path; '~' before a .*; got '~nobody-here"),
    (OWN | {"encoding": "cp0"}, "the name of an encoding, such as cp1252; got 'cp0'"),
])  # fmt: skip
def test_a_wrong_key_is_refused_by_file_and_key(read, tmp_path, keys, message):
    with pytest.raises(InputError, match=rf"a\.yaml: .*{message}"):
        read(**keys)
    with pytest.raises(InputError, match=r"site file .*none\.yaml does not exist"):
        read_site_file(tmp_path / "none.yaml")


def test_what_is_written_is_read(tmp_path):
    write_data(tmp_path)
    (tmp_path / "sites").mkdir()
    written = {name: tmp_path / name for name in ("images", "split")}
    written |= {"dataset": "nih", "metadata": None, "truth": tmp_path / "labels.csv"}
    written["labels"] = (written["truth"],)
    path = tmp_path / "sites/new.yaml"
    write_site_file(path, classes=["Mass", "Edema"], views="all", blank=None, **written)
    assert "labels: ../labels.csv" in path.read_text()
    read = read_site_file(path)
    assert {key: getattr(read, key) for key in written} == written
    assert (read.classes, read.views) == (("Mass", "Edema"), "all")
    assert "blank" not in path.read_text()


def test_a_table_says_how_it_is_written_and_other_data_sets_do_not(read):
    site = read(
        dataset="table", columns={"Bild": "image", "Datum": "ignored"}, encoding="latin1",
        words={"ja": 1, "k.A.": ""}, findings={"column": "Befund", "separator": "|"}, threshold=0.5,
    )  # fmt: skip
    assert site.columns == {"Bild": "image", "Datum": "ignored"}
    assert (site.words, site.encoding) == ({"ja": "1", "k.A.": ""}, "iso8859-1")
    assert (site.findings.separator, site.threshold) == ("|", 0.5)
    for keys in ({"words": {"ja": 1}}, {"threshold": 0.5}, {"patients": "exact"}, {"nested": True}):
        with pytest.raises(InputError, match="'patients' and 'nested' are for dataset 'table'"):
            read(**keys)


POLICY = SitePolicy(report_counts=True)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The site's file, in every folder."""
    monkeypatch.chdir(tmp_path)
    demo = DemoData((), lambda: Path("demo"), None)
    monkeypatch.setattr(offered_data, "demo_data", lambda _: demo)
    for name in ("job", "hospital", "started", "demo"):
        Path(name).mkdir()
        Path(name, "nih.yaml").touch()


@pytest.mark.parametrize(("given", "policy", "variable", "folder"), [
    ("job", NO_POLICY, "", "job"), (None, NO_POLICY, "", "demo"), (PHANTOM, NO_POLICY, "", "demo"),
    ("", SitePolicy(site_files="hospital"), "", "hospital"),
    ("hospital", SitePolicy(site_files="hospital"), "", "hospital"),
    ("started", SitePolicy(site_files="hospital"), "started", "hospital"),
    ("started", POLICY, "started", "started"), (PHANTOM, POLICY, PHANTOM, "demo"),
])  # fmt: skip
@pytest.mark.usefixtures("folders")
def test_a_policy_is_followed_else_the_variable(given, policy, variable, folder, monkeypatch):
    monkeypatch.setenv("CXR_SITES", variable)
    assert find_site_file("nih", given, policy, "nih") == Path(folder, "nih.yaml")


@pytest.mark.parametrize(("site", "given", "policy", "message"), [
    ("nih", "job", SitePolicy(site_files="hospital"), "set by this site .* the job names 'job'"),
    ("nih", "job", POLICY, "the job names 'job'"),
    ("nih", PHANTOM, POLICY, "the job names 'phantom'"),
    ("nih", "", POLICY, "needs the folder .*site_files.*CXR_SITES.*'phantom'"),
    ("../job/nih", None, SitePolicy(site_files="hospital"), "names '../job/nih'"),
    ("other", None, SitePolicy(site_files="hospital"), r"file, nih\.yaml; the job names 'other'"),
    ("/etc/nih", "job", NO_POLICY, "does not exist"),
])  # fmt: skip
@pytest.mark.usefixtures("folders")
def test_a_job_leads_a_hospital_nowhere_else(site, given, policy, message, monkeypatch):
    """Neither to another folder nor to the phantom."""
    monkeypatch.delenv("CXR_SITES", raising=False)
    with pytest.raises(SiteError, match=message):
        find_site_file(site, given, policy, "nih")
