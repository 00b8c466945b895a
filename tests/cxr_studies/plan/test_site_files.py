import dataclasses
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import study_runs
from cxr_phantom import demo_data
from cxr_studies.partition.skew import Skew
from cxr_studies.plan import site_files
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.run_folder import key_of
from cxr_studies.plan.site_files import ScenarioFiles, data_sets, given_sites, write_once
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file


@pytest.fixture
def found(small_data, tmp_path):
    return data_sets(small_data.data, ["nih", "chexpert", "mimic"], tmp_path)


def test_a_download_and_a_site_file_are_found_whole_by_the_names_of_the_study(found):
    assert {name: data.site.site for name, data in found.items()} == {n: n for n in found}
    assert all(120 < len(data.table) <= 150 for data in found.values())  # the frontal ones
    classes = [set(data.classes) for data in found.values()]
    assert classes == [set(NIH_CLASSES), set(CHEXPERT_CLASSES), set(UNION_CLASSES)]


@pytest.fixture
def digest(small_data, tmp_path):
    """The digest of a data set from another source."""

    def digest(source, name="nih"):
        data = small_data.data.model_copy(update={"data": {name: source}})
        return data_sets(data, [name], tmp_path / "out")[name].digest

    return digest


def test_an_official_download_says_what_its_site_file_does(found, small_data, digest):
    assert digest(small_data.home / "phantom/chexpert", "chexpert") == found["chexpert"].digest


def test_the_phantom_is_as_large_as_asked_and_drawn_for_every_seed(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(demo_data, "IMAGE_SIZE", 16)
    data = StudyData(data="phantom", images=60)
    found = data_sets(data, ["nih", "mimic"], tmp_path)
    assert len(found["nih"].table) == 60 and list(found) == ["nih", "mimic"]
    first, again, second = (given_sites(data, seed) for seed in (0, 0, 1))
    assert list(first) == ["nih", "chexpert"] and len(first["nih"].table) == 60
    assert first["nih"].site.truth.is_file()
    digests = [each["nih"].digest for each in (first, again, second)]
    assert digests[0] == digests[1] != digests[2]


def test_a_digest_is_of_labels_and_sizes_of_images_wherever_they_are(
    found, small_data, digest, tmp_path
):
    def relabel(folder):
        csv = next(folder.glob("*.csv"))
        csv.write_text(csv.read_text().replace("No Finding", "Hernia", 1))

    def grow(folder):
        image = next(folder.glob("**/*.png"))
        image.write_bytes(image.read_bytes() + b"\0")

    digests = [found["nih"].digest]
    for number, change in enumerate((lambda folder: None, relabel, grow)):
        copy = tmp_path / f"copy{number}/nih"
        shutil.copytree(small_data.home / "phantom/nih", copy)
        change(copy)
        digests.append(digest(copy))
    assert digests[0] == digests[1] and len(set(digests)) == 3


def test_a_digest_is_also_of_how_a_site_file_says_that_images_are_read(found, digest):
    first, site = found["nih"].digest, found["nih"].site
    ways = ({}, {"bits": 12}, {"contradictions": "refuse"})
    same, *others = [digest(site.model_copy(update=how)) for how in ways]
    assert first == same and len({first, *others}) == 3


SETS = (("Edema", "Mass"), ("Hernia", "Mass"))


@pytest.fixture(scope="module")
def files(small_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    found = data_sets(small_data.data, ["nih", "chexpert", "mimic"], folder / "data")
    return ScenarioFiles(found, folder / "sites")


def table(folder, site):
    return load_labels(read_site_file(folder / f"{site}.yaml")).table


def patients(labels, split="test"):
    return set(labels["patient"][labels["split"] == split])


def test_the_parts_test_the_patients_of_the_whole_however_many_parts_there_are(files):
    whole = table(files.write_whole({"nih": ["Mass"]}, seed=3), "nih")
    for sets in (SETS, (*SETS, ("Mass",))):
        folder = files.write_cut("nih", sets, seed=3, share=Fraction(1))
        parts = [table(folder, f"nih-{number}") for number in range(1, len(sets) + 1)]
        for split in ("train", "validation", "test"):
            assert set.union(*(patients(part, split) for part in parts)) == patients(whole, split)


def test_parts_have_their_own_classes_and_a_share_of_their_training_patients(files):
    folders = [files.write_cut("nih", SETS, seed=0, share=Fraction(s)) for s in ("1", "1/2")]
    whole, half = (table(folder, "nih-1") for folder in folders)
    assert [name for name in half if name in ("Edema", "Mass", "Hernia")] == ["Edema", "Mass"]
    assert len(patients(half, "train")) == pytest.approx(len(patients(whole, "train")) / 2, abs=1)
    assert patients(half) == patients(whole)


@pytest.mark.parametrize("skew", [Skew("quantity", 0.5), Skew("label", 0.5)], ids=str)
def test_parts_with_a_skew_are_others_of_the_same_test_patients(files, skew):
    folders = [
        files.write_cut("nih", SETS, seed=0, share=Fraction(1), skew=each)
        for each in (None, skew, Skew(skew.by, 2))
    ]
    assert len(set(folders)) == 3
    even, uneven = ([table(folder, f"nih-{n}") for n in (1, 2)] for folder in folders[:2])
    assert set.union(*map(patients, even)) == set.union(*map(patients, uneven))
    assert patients(even[0], "train") != patients(uneven[0], "train")


def test_wholes_have_the_classes_asked_for_and_other_seeds_other_test_patients(files, monkeypatch):
    folder = files.write_whole({"nih": ["Mass"], "chexpert": ["Edema", "Fracture"]}, seed=0)
    assert "Mass" in table(folder, "nih") and "Edema" not in table(folder, "nih")
    assert {"Edema", "Fracture"} <= set(table(folder, "chexpert"))
    other = table(files.write_whole({"nih": ["Mass"]}, seed=1), "nih")
    assert patients(table(folder, "nih")) != patients(other)
    assert set(table(files.write_test_only("mimic"), "mimic")["split"]) == {"test"}
    monkeypatch.setattr(site_files, "write_copy", None)  # what is there is not written again
    assert files.write_whole({"nih": ["Mass"], "chexpert": ["Edema", "Fracture"]}, seed=0) == folder


def test_images_of_data_sets_and_given_sites_are_decoded_once(small_data, tmp_path, monkeypatch):
    decoded = []
    monkeypatch.setattr(site_files, "prepare", lambda *given: decoded.append(given))
    run = study_runs.run()
    given = dataclasses.replace(run, where={**run.where, "site_files": "here", "given": True})
    found = data_sets(small_data.data, ["nih", "mimic"], tmp_path / "data")
    site_files.decode(found, [given, given, study_runs.run()], tmp_path / "sites", 32)
    assert [list(sites) for _, sites, _ in decoded] == [["nih"], ["mimic"], ["nih", "chexpert"]]
    assert decoded[2][0] == Path("here") and {size for *_, size in decoded} == {32}


def test_an_image_that_is_none_is_refused_before_anything_runs(small_data, cache, tmp_path):
    found = data_sets(small_data.data, ["nih"], tmp_path / "data")
    file = next((small_data.home / "phantom/nih").glob("**/*.png"))
    whole = file.read_bytes()
    file.write_bytes(b"none")
    try:
        with pytest.raises(ValueError, match=file.name):
            site_files.decode(found, [], tmp_path / "sites", 32)
    finally:
        file.write_bytes(whole)


WHAT = {"sites": 2, "classes": ["Mass", "Ödem"]}


def put(text):
    """A function that writes a text into a folder."""
    return lambda folder: (folder / "text").write_text(text)


def test_a_folder_is_named_by_what_is_in_it_and_written_once(tmp_path):
    def write(half):
        put("a")(half)
        (half / "link").symlink_to("../../labels.csv")
        assert (half / "link").read_text() == "Mass"  # relative paths are right from the beginning

    (tmp_path / "labels.csv").write_text("Mass")
    folder = write_once(tmp_path / "sites", WHAT, write)
    assert folder == tmp_path / "sites" / key_of(WHAT)
    assert write_once(tmp_path / "sites", WHAT, put("b")) == folder
    other = write_once(tmp_path / "sites", {"n": 2}, put("2"))
    assert [(each / "text").read_text() for each in (folder, other)] == ["a", "2"]
    assert (folder / "link").read_text() == "Mass"


def test_one_that_fails_leaves_nothing_and_what_another_study_wrote_meanwhile_stays(tmp_path):
    def fail(half):
        put("half of it")(half)
        assert not (tmp_path / key_of(WHAT)).exists()
        raise ValueError("no disk")

    def slow(half):
        put("slow")(half)
        write_once(tmp_path, WHAT, put("fast"))

    with pytest.raises(ValueError, match="no disk"):
        write_once(tmp_path, WHAT, fail)
    assert list(tmp_path.iterdir()) == []
    folder = write_once(tmp_path, WHAT, slow)
    assert (folder / "text").read_text() == "fast" and list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_cannot_be_there_is_an_error(tmp_path):
    (tmp_path / key_of(WHAT)).write_text("a file")
    with pytest.raises(OSError, match=key_of(WHAT)):
        write_once(tmp_path, WHAT, put("a"))
