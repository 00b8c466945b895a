"""What is made and removed; systems that run are in tests/poc."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from cxr_study.deployment import poc_system, processes
from cxr_study.deployment.flare_session import SessionError
from cxr_study.deployment.poc_project import PocError, PocProject
from cxr_study.deployment.poc_system import MARK, PocSystem
from cxr_study.deployment.processes import PortError, free_port

POC = Path(__file__).parents[3] / "poc"
PROJECT = POC / "project.yml"


@pytest.fixture
def system(tmp_path):
    return PocSystem(tmp_path / "poc")


class TestFolder:
    def test_who_takes_part_stands_in_it_from_wherever_it_is_named(self, system, monkeypatch):
        system.folder.mkdir()
        PocProject.read(PROJECT).changed(port=1, sites=["a", "b"]).write(system.folder / MARK)
        assert system.project.sites == ("a", "b")
        names = {role: path.name for role, path in system.workspaces.items()}
        assert names == {"server": "server", "a": "a", "b": "b"}
        assert system.lead.name == system.project.lead
        monkeypatch.chdir(system.folder.parent)
        relative = PocSystem(Path(system.folder.name))
        assert relative.root == system.root and relative.kit("a") == system.kit("a")

    def test_processes_find_this_folder_alone_and_this_users_cache(self, system, monkeypatch):
        monkeypatch.setenv("NVFLARE_HOME", "/elsewhere")
        monkeypatch.setenv("MINE", "1")
        monkeypatch.setenv("SURGAGG_CACHE", "cache")
        found = system.environment
        assert "NVFLARE_HOME" not in found and found["MINE"] == "1"
        assert found["HOME"] == f"{system.root}/home" and found["TMPDIR"] == f"{system.root}/tmp"
        assert found["NVFLARE_POC_WORKSPACE"] == f"{system.root}/system"
        assert found["SURGAGG_CACHE"] == str(Path("cache").absolute())
        assert found["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


class TestPrepare:
    @pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
    @pytest.mark.parametrize(
        ("where", "step"),
        [
            (PocProject, "write"),
            (PocProject, "provision"),
            (poc_system, "localise_site"),
            (poc_system, "localise_server"),
        ],
    )
    def test_whatever_fails_nothing_is_left(self, system, monkeypatch, where, step, error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(PocProject, "provision", lambda *_: None)
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


def test_what_no_poc_could_be_made_of_is_refused(system, tmp_path, taken, monkeypatch):
    with pytest.raises(PocError, match=r"no\.yml does not exist"):
        system.check(tmp_path / "no.yml")
    with pytest.raises(PocError, match="without spaces"):
        PocSystem(tmp_path / "my poc").check(PROJECT)
    with pytest.raises(PortError, match=f"needs port {taken}"):
        system.check(PROJECT, taken)
    system.check(PROJECT, free_port())
    system.folder.mkdir()
    project = PocProject.read(PROJECT)
    project.changed(port=taken).write(system.folder / MARK)
    with pytest.raises(PortError):  # its own, but it does not run
        system.check(PROJECT, taken)
    monkeypatch.setattr(processes, "processes", lambda folder: [folder])
    system.check(PROJECT, taken)
    project.changed(port=1).write(system.folder / MARK)
    with pytest.raises(PortError):  # it has another one
        system.check(PROJECT, taken)


class TestStop:
    @pytest.fixture
    def stopped(self, system, monkeypatch):
        """Stops a system of whose processes some run; what was done."""
        system.folder.mkdir()
        PocProject.read(PROJECT).changed(port=1).write(system.folder / MARK)
        did = []

        def stop(*running, error=None):
            @contextmanager
            def session(kit, **_):
                if error:
                    raise error
                left = iter([["job"], ["job"], []])  # it ends some time after it was aborted
                yield SimpleNamespace(running=lambda: next(left), abort=did.append)
                did.append("left")

            monkeypatch.setattr(poc_system, "FlareSession", session)
            monkeypatch.setattr(poc_system.time, "sleep", lambda _: None)
            monkeypatch.setattr(processes, "processes", lambda _: [])
            monkeypatch.setattr(processes, "runs", lambda _, *words: words in running)
            monkeypatch.setattr(processes, "end", lambda _: did.append("ended"))
            try:
                system.stop()
            except KeyboardInterrupt:
                did.append("interrupted")
            return did

        return stop

    def test_a_running_job_is_aborted_first_and_may_end(self, stopped):
        assert stopped(processes.JOB, processes.SERVER) == ["job", "left", "ended"]

    @pytest.mark.parametrize("running", [(), (processes.JOB,), (processes.SERVER,)])
    def test_where_no_job_runs_or_no_server_nobody_is_asked(self, stopped, running):
        assert stopped(*running) == ["ended"]

    @pytest.mark.parametrize(
        ("error", "did"),
        [(SessionError("gone"), ["ended"]), (KeyboardInterrupt(), ["ended", "interrupted"])],
    )
    def test_whatever_happens_meanwhile_everything_is_ended(self, stopped, error, did):
        assert stopped(processes.JOB, processes.SERVER, error=error) == did


class TestClean:
    def test_one_whose_making_was_killed_is_removed(self, system):
        code = (
            "import os, sys; from pathlib import Path\n"
            "from cxr_study.deployment.poc_system import PocProject, PocSystem\n"
            "PocProject.provision = lambda *_: os.kill(os.getpid(), 9)\n"
            "PocSystem(Path(sys.argv[1])).prepare(Path(sys.argv[2]))"
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
