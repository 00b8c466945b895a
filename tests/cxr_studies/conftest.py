"""Small data for studies, and made-up runs."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import study_data
from cxr_studies.analysis import study_results
from cxr_studies.plan.data_file import read_data
from once import once
from study_runs import MadeUp


@pytest.fixture(scope="session")
def small_data(tmp_path_factory):
    """The data file of `study_data`, as read, and its folder."""

    def make(folder):
        study_data.write(folder, study_data.stand_in)

    home = once(tmp_path_factory, "small-data", make)
    path = home / "small.yaml"
    return SimpleNamespace(path=path, data=read_data(path), home=home)


@pytest.fixture
def study(tmp_path):
    """A study of NIH and CheXpert to be made up, run by run."""
    return MadeUp(tmp_path)


@pytest.fixture
def reported(monkeypatch):
    """Title of a progress bar of `run_in_processes` -> what it was told: (done, total), ..."""
    told = {}

    @contextmanager
    def bar(title):
        yield lambda *done: told.setdefault(title, []).append(done)

    monkeypatch.setattr(study_results, "bar", bar)
    return told
