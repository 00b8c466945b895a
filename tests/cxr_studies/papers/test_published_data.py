"""The data of the papers: what the shipped data files mean, and how others are described."""

import shutil
from dataclasses import replace

import pandas as pd
import pytest

from cxr_studies.papers.published_data import PUBLISHED, DataUse, data_use_of, differences
from cxr_studies.papers.published_results import SOURCES
from cxr_studies.plan import shipped_files
from cxr_studies.plan.data_file import DATA_SETS, read_data
from cxr_studies.plan.site_files import data_sets

SOURCES_OF = ("ml4h2024", "arxiv2301.06683v1", "arxiv2303.06180")
TEMPLATES = dict(zip(("paper", "paper-version1", "paper-fedfbn"), SOURCES_OF, strict=True))


@pytest.fixture(scope="module")
def home(small_data, tmp_path_factory):
    """A folder with the phantom where the shipped data files look for real data."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(small_data.home / "phantom", home, dirs_exist_ok=True)
    (home / "chexpert").rename(home / "CheXpert-v1.0-small")
    folder = home / "mimic/cxr-lt-2023"
    folder.mkdir()
    rows = pd.read_csv(home / "mimic/cxr-lt-2024/train_labeled.csv", dtype=str)
    for number, name in enumerate(("train", "development", "test")):
        rows[number::3].to_csv(folder / f"{name}.csv", index=False)
    (home / "initial.npz").touch()
    return home


@pytest.mark.parametrize(("name", "source"), TEMPLATES.items())
def test_a_shipped_data_file_means_the_data_of_its_paper(name, source, home, tmp_path):
    shutil.copy(shipped_files.find(name, "data_files", "data file"), home)
    data = read_data(home / f"{name}.yaml")
    found = data_sets(data, DATA_SETS, tmp_path)
    here = {key: data_use_of(each) for key, each in found.items()}
    for key, there in PUBLISHED[source].items():
        assert replace(here[key], images=there.images) == there
        assert (here[key].images > 150) == (there.views == "all")
        labels = found[key].table[list(found[key].classes)]
        assert there.labels != "mimic" or (labels == -1).any(axis=None)  # which count as negative
    assert data.preset == name


def test_every_source_of_published_figures_has_its_data():
    assert PUBLISHED.keys() == SOURCES.keys() == set(TEMPLATES.values())
    assert all(of.keys() == DATA_SETS.keys() for of in PUBLISHED.values())
    assert set(shipped_files.names("data_files")) == {*TEMPLATES, "phantom"}


@pytest.mark.parametrize(("change", "output"), [
    ({}, None),
    ({"images": 5}, "here 5 frontal images, 14 classes of nih, uncertain zeros, blank negative; "
     "there 112,120 frontal images, 14 classes"),
    ({"labels": "table"}, "14 classes of table"), ({"classes": 13}, "13 classes of nih"),
    ({"views": "all"}, "112,120 images of all views"),
    ({"uncertain": "ones, blank negative"}, "uncertain ones"),
])  # fmt: skip
def test_differences_are_described_with_both(change, output):
    mine: DataUse = replace(PUBLISHED["ml4h2024"]["nih"], **change)
    found = differences("ml4h2024", {"nih": mine})
    assert output in found["nih"] if output else found == {}
