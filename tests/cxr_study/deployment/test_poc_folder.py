import shutil
from pathlib import Path

import pytest

from cxr_study.deployment.poc_folder import MARK, PocFolder
from cxr_study.deployment.poc_project import PocError, PocProject

PROJECT = Path(__file__).parents[3] / "poc/project.yml"


@pytest.fixture
def folder(tmp_path):
    PocProject.read(PROJECT).changed(port=1, sites=["a", "b"]).write(tmp_path / MARK)
    return PocFolder(tmp_path)


def test_who_takes_part_stands_in_it(folder):
    assert folder.project.sites == ("a", "b")
    names = {role: path.name for role, path in folder.places.items()}
    assert names == {"server": "server", "a": "a", "b": "b"}
    assert folder.lead.name == folder.project.lead


def test_it_is_the_same_folder_from_wherever_it_is_named(folder, monkeypatch):
    monkeypatch.chdir(folder.folder.parent)
    relative = PocFolder(Path(folder.folder.name))
    assert relative.root == folder.root and relative.kit("a") == folder.kit("a")


def test_a_folder_with_a_project_file_of_flares_is_none(tmp_path):
    shutil.copy(PROJECT, tmp_path)
    with pytest.raises(PocError, match=r"holds no POC\. Say surgagg deploy poc prepare --folder"):
        _ = PocFolder(tmp_path).project
