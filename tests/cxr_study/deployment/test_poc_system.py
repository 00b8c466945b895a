"""What is made and removed; systems that run are in tests/poc."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cxr_study.deployment import poc_command, poc_system, services
from cxr_study.deployment.poc_folder import MARK
from cxr_study.deployment.poc_project import PocError, PocProject
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.deployment.ports import PortError, free_port

POC = Path(__file__).parents[3] / "poc"
PROJECT = POC / "project.yml"


@pytest.fixture
def system(tmp_path):
    return PocSystem(tmp_path / "poc")


class TestPrepare:
    @pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
    @pytest.mark.parametrize(
        ("where", "step"),
        [
            (PocProject, "write"),
            (poc_command, "prepare"),
            (poc_system, "localise_site"),
            (poc_system, "localise_server"),
        ],
    )
    def test_whatever_fails_nothing_is_left(self, system, monkeypatch, where, step, error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(poc_command, "prepare", lambda *_: None)
        monkeypatch.setattr(poc_system, "localise_site", lambda *_: None)
        monkeypatch.setattr(where, step, fail)
        with pytest.raises(error):
            system.prepare(PROJECT)
        assert not system.folder.exists()

    def test_a_folder_that_exists_is_left_alone(self, system):
        system.folder.mkdir()
        with pytest.raises(PocError, match="needs a new folder"):
            system.prepare(PROJECT)
        assert system.folder.is_dir()


class TestCheck:
    def test_the_project_file(self, system, tmp_path):
        with pytest.raises(PocError, match=r"no\.yml does not exist"):
            system.check(tmp_path / "no.yml")

    def test_a_folder_with_a_space(self, tmp_path):
        with pytest.raises(PocError, match="without spaces"):
            PocSystem(tmp_path / "my poc").check(PROJECT)

    def test_a_port_that_another_process_has(self, system, taken):
        with pytest.raises(PortError, match=f"needs port {taken}"):
            system.check(PROJECT, taken)
        system.check(PROJECT, free_port())

    def test_only_a_port_of_its_own_that_runs_will_be_free(self, system, taken, monkeypatch):
        system.folder.mkdir()
        project = PocProject.read(PROJECT)
        project.changed(port=taken).write(system.folder / MARK)
        with pytest.raises(PortError):  # it does not run
            system.check(PROJECT, taken)
        monkeypatch.setattr(services, "processes", lambda folder: [folder])
        system.check(PROJECT, taken)
        project.changed(port=1).write(system.folder / MARK)
        with pytest.raises(PortError):  # it has another one
            system.check(PROJECT, taken)


class TestClean:
    def test_one_whose_making_was_killed_is_removed(self, system):
        code = (
            "import os, sys; from pathlib import Path\n"
            "from cxr_study.deployment import poc_command, poc_system\n"
            "poc_command.prepare = lambda *_: os.kill(os.getpid(), 9)\n"
            "poc_system.PocSystem(Path(sys.argv[1])).prepare(Path(sys.argv[2]))"
        )
        done = subprocess.run([sys.executable, "-c", code, str(system.folder), str(PROJECT)])
        assert done.returncode == -signal.SIGKILL and system.folder.is_dir()
        system.clean()
        assert not system.folder.exists()

    def test_a_mark_that_was_half_written_is_one(self, system):
        system.folder.mkdir()
        (system.folder / MARK).write_text("name: [")
        system.clean()
        assert not system.folder.exists()

    def test_a_folder_with_a_project_file_of_flares_is_not_removed(self, system):
        shutil.copytree(POC, system.folder)
        with pytest.raises(PocError, match="holds no POC"):
            system.clean()
        assert (system.folder / "project.yml").is_file()
