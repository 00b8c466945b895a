"""What is refused before anything is made; with the run around it in test_simulated_run."""

from pathlib import Path

import pytest

from cxr_study.data.sites.site_file import SiteFileError
from cxr_study.jobs.settings import JobError
from cxr_study.runs.run_request import Earlier, RunFolderError, StudyRun, check

JOBS = Path(__file__).parents[3] / "jobs"


@pytest.fixture
def refused(tmp_path):
    """The message that a run with some changes is refused with."""

    def message(kind, own=False, **changes):
        values = {
            "job": JOBS / "surgical",
            "folder": tmp_path / "run",
            "sites": ("a", "b"),
            "site_files": None,
            "initial_body": None,
            "settings": {},
        }
        with pytest.raises(kind) as error:
            check(StudyRun(**{**values, **changes}), own=own)
        return str(error.value)

    return message


def test_a_value_that_no_run_could_use(refused):
    assert "epochs must be at least 1" in refused(ValueError, settings={"epochs": 0})
    assert "epochs must be at least 1" in refused(ValueError, per_site={"a": {"epochs": 0}})


def test_the_same_site_twice(refused):
    assert "each another; got 'a', 'a'" in refused(JobError, sites=("a", "a"))


def test_too_few_sites(refused):
    assert "needs the results of 2 sites; got a." in refused(JobError, sites=("a",))


@pytest.mark.parametrize(
    ("job", "reason"), [("census", "trains nothing"), ("surgical_he", "are encrypted")]
)
def test_a_job_that_leaves_no_model_to_report_on(refused, job, reason):
    assert reason in refused(JobError, job=JOBS / job)


def test_a_site_without_a_file(refused, tmp_path):
    assert f"{tmp_path}/a.yaml does not exist" in refused(SiteFileError, site_files=tmp_path)


def test_a_run_to_continue_that_left_no_model(refused, tmp_path):
    message = refused(RunFolderError, earlier=Earlier(tmp_path / "earlier"))
    assert "earlier/workspace" in message and "last.npz, which is not there" in message


def test_a_folder_that_flare_cannot_work_in(refused, tmp_path):
    assert "without spaces" in refused(RunFolderError, folder=tmp_path / "my run")
