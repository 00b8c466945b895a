from fractions import Fraction

import pytest

from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.studies.plan.data_sets import data_sets
from cxr_study.studies.plan.setting_files import SettingFiles

SETS = (("Edema", "Mass"), ("Hernia", "Mass"))


@pytest.fixture(scope="module")
def files(small_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    found = data_sets(small_data.data, ["nih", "chexpert", "mimic"], folder / "data")
    return SettingFiles(found, folder / "sites")


def table(folder, site):
    return load_labels(read_site_file(folder / f"{site}.yaml")).table


def patients(labels, split="test"):
    return set(labels["patient"][labels["split"] == split])


def test_the_parts_test_the_patients_of_the_whole_however_many_parts_there_are(files):
    whole = table(files.wholes({"nih": ["Mass"]}, seed=3), "nih")
    for sets in (SETS, (*SETS, ("Mass",))):
        folder = files.parts("nih", sets, seed=3, share=Fraction(1))
        parts = [table(folder, f"nih-{number}") for number in range(1, len(sets) + 1)]
        for split in ("train", "validation", "test"):
            assert set.union(*(patients(part, split) for part in parts)) == patients(whole, split)


def test_parts_hold_their_own_classes_and_a_share_of_their_training_patients(files):
    folders = [files.parts("nih", SETS, seed=0, share=Fraction(s)) for s in ("1", "1/2")]
    whole, half = (table(folder, "nih-1") for folder in folders)
    assert [name for name in half if name in ("Edema", "Mass", "Hernia")] == ["Edema", "Mass"]
    assert len(patients(half, "train")) == pytest.approx(len(patients(whole, "train")) / 2, abs=1)
    assert patients(half) == patients(whole)


def test_wholes_have_the_classes_that_are_asked_for(files):
    folder = files.wholes({"nih": ["Mass"], "chexpert": ["Edema", "Fracture"]}, seed=0)
    assert "Mass" in table(folder, "nih") and "Edema" not in table(folder, "nih")
    assert {"Edema", "Fracture"} <= set(table(folder, "chexpert"))


def test_another_seed_tests_other_patients(files):
    first, second = (table(files.wholes({"nih": ["Mass"]}, seed=s), "nih") for s in (0, 1))
    assert patients(first) != patients(second)


def test_what_no_site_trains_on_is_tested_whole(files):
    labels = table(files.test_only("mimic"), "mimic")
    assert set(labels["split"]) == {"test"}


def test_what_is_there_is_not_written_again(files, monkeypatch):
    folder = files.wholes({"nih": ["Mass"]}, seed=0)
    monkeypatch.setattr(files, "_write", None)
    assert files.wholes({"nih": ["Mass"]}, seed=0) == folder
