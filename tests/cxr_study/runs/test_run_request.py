"""What is refused before anything is made or removed."""

from pathlib import Path

import pytest

from cxr_study.data.sites.site_file import SiteFileError
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.runs.finished_run import RunFolderError, checkpoint_folder
from cxr_study.runs.run_request import RunRequest, check

JOBS = Path(__file__).parents[3] / "jobs"


@pytest.fixture
def request_of(tmp_path):
    values = {
        "job": JOBS / "surgical", "folder": tmp_path / "run", "sites": ("a", "b"),
        "site_files": None, "initial_body": None, "settings": {},
    }  # fmt: skip
    return lambda **changes: RunRequest(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"settings": {"rounds": 2}}, JobError, "no setting 'rounds'"),
        ({"settings": {"epochs": 0}}, ValueError, "epochs must be at least 1"),
        ({"per_site": {"a": {"epochs": 0}}}, ValueError, "epochs must be at least 1"),
        ({"sites": ("a", "a")}, JobError, "each another; got 'a', 'a'"),
        ({"sites": ("a",)}, JobError, "needs the results of 2 sites; got a."),
        ({"job": JOBS / "census"}, JobError, "trains nothing, .* run its folder with nvflare sim"),
        ({"job": JOBS / "surgical_he"}, JobError, "are encrypted.*`surgagg model decrypt`"),
        ({"site_files": Path("none")}, SiteFileError, "none/a.yaml does not exist"),
        ({"folder": Path("/my run")}, RunFolderError, "without spaces in its path; got '/my run'"),
    ],
)
def test_what_nobody_could_run_is_refused(request_of, changes, kind, message):
    check(request_of(), local_models=True)
    with pytest.raises(kind, match=message):
        check(request_of(**changes), local_models=False)


def test_a_run_to_continue_needs_a_model_and_for_a_site_alone_one_of_its_own(request_of, tmp_path):
    study = request_of(earlier=tmp_path / "earlier")
    last = checkpoint_folder(tmp_path / "earlier/workspace") / "last.npz"
    with pytest.raises(RunFolderError, match=r"earlier/workspace.*last\.npz, which is not there"):
        check(study, local_models=False)
    last.parent.mkdir(parents=True)
    last.touch()
    check(study, local_models=False)
    with pytest.raises(RunFolderError, match=r"earlier/local/a/.*last\.npz, which is not there"):
        check(study, local_models=True)
