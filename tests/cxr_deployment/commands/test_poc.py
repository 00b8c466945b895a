import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from cxr_deployment import poc_run
from cxr_deployment.commands import systems as cli_poc
from cxr_deployment.poc_system import PocSystem
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from tiny_job import JOBS
from typed import answer

PROJECT = Path(__file__).parents[3] / "poc/project.yml"


def poc(command, *arguments, code=0):
    """Type `surgagg deploy poc ...`, on the phantom where it wants data and is given none."""
    phantom = ["--phantom"] * (command in ("run", "prepare") and "--site-files" not in arguments)
    return answer("deploy", "poc", command, *phantom, *arguments, code=code)


@pytest.fixture
def ran(monkeypatch):
    """The runs that were asked for."""
    runs = []

    monkeypatch.setattr(poc_run, "run", lambda run, *_, **how: runs.append((run, how)))
    monkeypatch.setattr(cli_poc, "finished_run", lambda folder: None)
    monkeypatch.setattr(cli_poc, "make_report", lambda *_: cli_poc.say("the answer"))
    return runs


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """Folder of an earlier run, whose POC was left half-made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poc").mkdir()
    shutil.copy(PROJECT, tmp_path / "poc")
    out = tmp_path / "out"
    (out / "poc/home").mkdir(parents=True)
    shutil.copytree(JOBS / "surgical", out / "job")
    return out


class TestRun:
    def test_it_takes_the_jobs_sites_and_a_body_from_anywhere(self, ran, tmp_path, monkeypatch):
        assert "the answer" in poc("run", JOBS / "surgical", "--out", tmp_path / "out")
        monkeypatch.chdir(tmp_path)
        save(Checkpoint({"dense/kernel": np.ones(2)}, {}), tmp_path / "body.npz")
        given = ("--out", "other", "--initial-body", "body.npz", "--project", PROJECT)
        poc("run", JOBS / "surgical", *given)
        (first, how), (second, _) = ran
        assert first.job.sites == ("nih", "chexpert") and first.site_files is None
        assert how == {"port": None, "retries": 3, "keep": False}
        assert second.job.settings["initial_body"] == str(tmp_path / "body.npz")

    def test_an_earlier_one_is_stopped_and_removed_if_wanted(self, ran, earlier, monkeypatch):
        stopped = []

        def stop(system):
            assert system.folder.is_dir()
            stopped.append(system.folder)

        monkeypatch.setattr(PocSystem, "stop", stop)
        assert "needs a new folder" in poc("run", JOBS / "surgical", "--out", earlier, code=2)
        assert not stopped
        poc("run", JOBS / "surgical", "--out", earlier, "--force")
        assert stopped == [earlier / "poc"] and not stopped[0].exists()

    @pytest.mark.parametrize(("options", "message"), [
        ("--project no.yml", "no.yml does not exist; a POC needs"),
        ("--port {taken}", "the server needs port"),
        ("--site-files no", "no/nih.yaml does not exist"),
        ("--sites nih", "needs the results of 2 sites; got nih. Add sites"),
        ("--set backbone=foo", "setting 'backbone' has no value 'foo'; "),
        ("--set hidden=8", "the initial body of the phantom is of"),
        ("--initial-body no.npz", "no.npz' does not exist"),
        ("--initial-body {earlier}/job/meta.json", "which the new run needs"),
        ("--out spaced\\ run", "without spaces"),
        ("--out others", "only what an earlier run made"),
        ("--port 70000", "65535"),
    ])  # fmt: skip
    def test_a_mistake_keeps_an_earlier_run(self, ran, earlier, taken, options, message):
        shutil.copytree(earlier, "spaced run")
        shutil.copytree(earlier / "poc", "others/poc")
        words = shlex.split(options.format(taken=taken, earlier=earlier))
        given = ("--out", earlier, "--force", *words)
        assert message in poc("run", JOBS / "surgical", *given, code=2)
        assert all((Path(out) / "poc").is_dir() for out in (earlier, "spaced run", "others"))
        assert not ran


def test_a_system_is_prepared_once_in_a_folder_and_removed(tmp_path):
    folder, sites = ("--folder", tmp_path / "poc"), tmp_path / "sites"
    own = ("--project", PROJECT, "--sites", "a,b", "--site-files", sites)
    output = poc("prepare", *own, *folder)
    assert "server and a, b, port" in output
    system = PocSystem(tmp_path / "poc")
    assert output.splitlines()[-2:] == [f"lead      {system.lead}", f"server    {system.server}"]
    assert (system.lead / "startup/fed_admin.json").is_file()
    assert set(system.workspaces) == {"server", "a", "b"} and system.site_files == sites
    assert not list(system.folder.glob("*/*/prod_00/nih"))
    assert "needs a new folder" in poc("prepare", "--project", PROJECT, *folder, code=2)
    poc("stop", *folder)
    poc("clean", *folder)
    assert not system.folder.exists()
    system.prepare(PROJECT)
    assert system.site_files is None  # the phantom


@pytest.mark.parametrize("command", ["start", "stop", "clean"])
def test_what_was_not_prepared_is_not_there(tmp_path, command):
    (tmp_path / "mine.txt").touch()
    assert "holds no POC" in poc(command, "--folder", tmp_path, code=2)
    assert (tmp_path / "mine.txt").is_file()
