"""Sites that a run forks; those of the tiny job, which brings its code, are not."""

import pytest

import study_data
from cxr_study.jobs import job_folder
from cxr_study.runs.simulator_process import LostSiteError, simulate
from simulated import processes
from tiny_job import JOBS

SITES = ["nih", "chexpert"]


def test_one_that_is_killed_is_noticed_and_nothing_is_left(tmp_path):
    study_data.write(tmp_path, study_data.network)
    job, run, killed = tmp_path / "job", tmp_path / "run", []
    settings = {**study_data.SETTINGS, "num_rounds": 50, "tracking": "none"}
    job_folder.copy(JOBS / "surgical", job, sites=SITES, settings=settings)

    def kill(events):
        if not killed and any(event["event"] == "round" for event in events):
            killed.extend(each for each in processes(run) if each.cwd() == str(run / "nih"))
            for process in killed:
                assert "multiprocessing.forkserver" in process.cmdline()[-1]
                process.kill()

    environment = {
        "CXR_SITES": str(tmp_path / "phantom/sites"), "CXR_INITIAL_BODY": str(tmp_path / "body.npz")
    }  # fmt: skip
    with pytest.raises(LostSiteError, match="process of nih is gone"):
        simulate(job, run, SITES, environment=environment, watch=kill)
    assert len(killed) == 1
    assert processes(run) == []
