import shlex
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cxr_study.cli import main as cli
from cxr_study.cli import poc as cli_poc
from cxr_study.deployment import poc_run
from cxr_study.deployment.poc_project import PocError
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.jobs import job_folder
from cxr_study.runs.finished_run import write_facts
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from tiny_job import JOBS

PROJECT = Path(__file__).parents[3] / "poc/project.yml"


def call(command, *arguments):
    """Type a command, on the phantom where it wants data and is given none."""
    phantom = ["--phantom"] * (command in ("run", "prepare") and "--site-files" not in arguments)
    return CliRunner().invoke(cli.app, ["deploy", "poc", command, *phantom, *map(str, arguments)])


@pytest.fixture
def ran(monkeypatch):
    """The runs that were asked for; each leaves what a run leaves."""
    runs = []

    def run(poc, console, report):
        runs.append(poc)
        job_folder.copy(
            poc.job, poc.folder / "job", sites=poc.sites, settings=poc.settings
        )  # fmt: skip
        write_facts(poc.folder, poc.site_files, ["1"])
        report()

    monkeypatch.setattr(poc_run, "run", run)
    said = lambda: cli_poc.say("the answer")  # noqa: E731
    monkeypatch.setattr(cli_poc, "make_report", lambda run, folder, title, to: said)
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
    def test_the_phantom_with_the_jobs_own_sites_by_default(self, ran, tmp_path):
        done = call("run", JOBS / "surgical", "--out", tmp_path / "out")
        assert done.exit_code == 0 and "the answer" in done.output
        (poc,) = ran
        assert poc.sites == ("nih", "chexpert") and poc.site_files is None
        assert poc.port is None and poc.retries == 3 and not poc.keep

    def test_an_initial_body_is_found_from_anywhere(self, ran, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        save(Checkpoint({"dense/kernel": np.ones(2)}, {}), tmp_path / "body.npz")
        given = ("--out", "out", "--initial-body", "body.npz", "--project", PROJECT)
        call("run", JOBS / "surgical", *given)
        assert ran[0].settings["initial_body"] == str(tmp_path / "body.npz")

    def test_an_earlier_one_is_stopped_and_removed_where_that_is_wanted(
        self, ran, earlier, monkeypatch
    ):
        stopped = []

        def stop(system):
            assert system.folder.is_dir()
            stopped.append(system.folder)

        monkeypatch.setattr(PocSystem, "stop", stop)
        refused = call("run", JOBS / "surgical", "--out", earlier)
        assert "needs a new folder" in str(refused.exception) and not stopped
        assert call("run", JOBS / "surgical", "--out", earlier, "--force").exit_code == 0
        assert stopped == [earlier / "poc"] and not stopped[0].exists()

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ("--project no.yml", "no.yml does not exist; a POC needs"),
            ("--port {taken}", "the server needs port"),
            ("--site-files no", "no/nih.yaml does not exist"),
            ("--sites nih", "needs the results of 2 sites; got nih. Add sites"),
            ("--set backbone=foo", "setting 'backbone' must be one of"),
            ("--set hidden=8", "the initial body of the phantom is of"),
            ("--initial-body no.npz", "no.npz' does not exist"),
            ("--preset no", "no preset 'no'"),
            ("--out spaced\\ run", "without spaces"),
            ("--out others", "only what an earlier run made"),
        ],
    )
    def test_a_mistake_costs_nobody_an_earlier_run(self, ran, earlier, options, told):
        shutil.copytree(earlier, "spaced run")
        shutil.copytree(earlier / "poc", "others/poc")
        with socket.socket() as listener:
            listener.bind(("", 0))
            listener.listen()
            words = shlex.split(options.format(taken=listener.getsockname()[1]))
            given = ("--out", earlier, "--force", *words)
            assert told in str(call("run", JOBS / "surgical", *given).exception)
        assert all((Path(out) / "poc").is_dir() for out in (earlier, "spaced run", "others"))
        assert not ran

    def test_a_number_that_is_no_port_is_refused(self, ran):
        done = call("run", "surgical", "--port", 70000)
        assert done.exit_code == 2 and "65535" in done.output
        assert ran == []


class TestSteps:
    def test_a_system_is_prepared_once_in_a_folder(self, tmp_path):
        folder, sites = ("--folder", tmp_path / "poc"), tmp_path / "sites"
        given = ("--project", PROJECT, "--sites", "a,b", "--site-files", sites)
        done = call("prepare", *given, *folder)
        assert done.exit_code == 0 and "server and a, b, port" in done.output
        system = PocSystem(tmp_path / "poc")
        assert (system.lead / "startup/fed_admin.json").is_file()
        assert set(system.workspaces) == {"server", "a", "b"} and system.site_files == sites
        assert not list(system.folder.glob("*/*/prod_00/nih"))
        again = call("prepare", "--project", PROJECT, *folder)
        assert "needs a new folder" in str(again.exception)
        assert call("stop", *folder).exit_code == 0
        assert call("clean", *folder).exit_code == 0
        assert not system.folder.exists()

    def test_without_site_files_it_has_the_phantom(self, tmp_path):
        system = PocSystem(tmp_path / "poc")
        system.prepare(PROJECT)
        assert system.site_files is None

    @pytest.mark.parametrize("command", ["start", "stop", "clean"])
    def test_what_was_not_prepared_is_not_there(self, tmp_path, command):
        (tmp_path / "mine.txt").touch()
        done = call(command, "--folder", tmp_path)
        assert isinstance(done.exception, PocError) and "holds no POC" in str(done.exception)
        assert (tmp_path / "mine.txt").is_file()
