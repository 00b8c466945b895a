import shutil
from pathlib import Path

import pytest

from cxr_study.runs.finished_run import (
    RunFolderError,
    downloaded_run,
    finished_run,
    read_site_files,
    write_facts,
)
from tiny_job import JOBS


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(JOBS / "surgical", tmp_path / "job")
    return tmp_path


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


class TestFinishedRun:
    def test_of_the_simulator(self, folder):
        write_facts(folder, folder / "files")
        run = finished_run(folder)
        assert run.servers == (folder / "workspace/server/simulate_job",)
        assert run.site_files == folder / "files" and not run.elsewhere
        assert run.states["nih"] == folder / "workspace/nih/checkpoints/simulate_job"
        assert run.alone == {}

    def test_a_site_alone_has_its_own_model_or_the_one_of_its_server(self, folder):
        write_facts(folder, None)
        nih = touch(folder / "local/nih/server/simulate_job/models/best.npz")
        touch(folder / "local/chexpert/server/simulate_job/models/best.npz")
        chexpert = touch(folder / "local/chexpert/chexpert/checkpoints/simulate_job/site_best.npz")
        assert finished_run(folder).alone == {"nih": nih, "chexpert": chexpert}

    def test_of_a_deployed_system_with_every_job_that_made_it(self, folder):
        write_facts(folder, None, ["1", "2"])
        run = finished_run(folder)
        assert run.servers == (folder / "results/1/workspace", folder / "results/2/workspace")
        assert run.states["nih"] == folder / "sites/nih" and not run.elsewhere

    def test_data_that_is_elsewhere_stays_so(self, folder):
        write_facts(folder, None, ["1"], elsewhere=True)
        assert finished_run(folder).elsewhere

    def test_another_folder_is_refused(self, tmp_path):
        with pytest.raises(RunFolderError, match=r"holds no run\.json"):
            finished_run(tmp_path)

    def test_site_files_are_found_from_anywhere(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        write_facts(folder, Path("files"))
        assert read_site_files(folder) == folder / "files"


class TestDownloadedRun:
    @pytest.fixture
    def downloaded(self, tmp_path):
        shutil.copytree(JOBS / "surgical", tmp_path / "1234/job/surgical")
        (tmp_path / "1234/workspace").mkdir()
        return tmp_path / "1234"

    def test_it_has_the_job_in_it(self, downloaded):
        run = downloaded_run(downloaded, None, states={"nih": downloaded})
        assert run.job == downloaded / "job/surgical"
        assert run.servers == (downloaded / "workspace",)
        assert run.states == {"nih": downloaded}

    def test_another_folder_is_refused(self, downloaded):
        (downloaded / "workspace").rmdir()
        with pytest.raises(RunFolderError, match="or of a downloaded job, is needed"):
            downloaded_run(downloaded, None)
