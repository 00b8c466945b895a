import shutil
from pathlib import Path

import pytest

from cxr_study.runs.finished_run import RunFolderError, downloaded_run, finished_run, write_facts
from tiny_job import JOBS


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(JOBS / "surgical", tmp_path / "job")
    return tmp_path


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_run_in_the_simulator(folder, monkeypatch):
    monkeypatch.chdir(folder)
    write_facts(folder, Path("files"))
    run = finished_run(folder)
    assert run.servers == (folder / "workspace/server/simulate_job",)
    assert run.site_files == folder / "files" and not run.elsewhere
    assert run.states["nih"] == folder / "workspace/nih/checkpoints/simulate_job"
    assert run.alone == {}
    nih = touch(folder / "local/nih/server/simulate_job/models/best.npz")
    touch(folder / "local/chexpert/server/simulate_job/models/best.npz")
    own = touch(folder / "local/chexpert/chexpert/checkpoints/simulate_job/site_best.npz")
    assert finished_run(folder).alone == {"nih": nih, "chexpert": own}


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_run_on_a_deployed_system_has_every_job_that_made_it(folder, elsewhere):
    write_facts(folder, None, ["1", "2"], elsewhere=elsewhere)
    run = finished_run(folder)
    assert run.servers == (folder / "results/1/workspace", folder / "results/2/workspace")
    assert run.states["nih"] == folder / "sites/nih" and run.elsewhere == elsewhere


def test_a_downloaded_job(folder):
    job = folder / "1234/job/surgical"
    shutil.copytree(folder / "job", job)
    with pytest.raises(RunFolderError, match="or of a downloaded job, is needed"):
        downloaded_run(folder / "1234", None)
    (folder / "1234/workspace").mkdir()
    run = downloaded_run(folder / "1234", None, states={"nih": folder})
    assert (run.job, run.servers) == (job, (folder / "1234/workspace",))
    assert run.states == {"nih": folder}


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match=r"holds no run\.json"):
        finished_run(tmp_path)
