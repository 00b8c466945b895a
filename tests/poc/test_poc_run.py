"""A FLARE system on this machine, from start to end, and what it survives."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import deployed
import faulty_run
import tiny_job
from cxr_study.common.progress import Steps
from cxr_study.deployment import deployed_run, poc_run, processes
from cxr_study.deployment.deployed_run import DeployedRun, DeployedRunError
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.poc_project import PocError
from cxr_study.deployment.poc_run import PocRun
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.deployment.processes import PortError
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import finished_run
from simulated import SITES
from surgical_aggregation.checkpoints.checkpoint import load

TWO = {name: SITES[name] for name in ("north", "south")}
ROUNDS = 6


def kill(system, word, site, rounds):
    """Kill a process of a system once its job has made some rounds; in a thread of its own."""

    def wait_and_kill():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            time.sleep(0.05)
            records = system.folder.glob("system/*/prod_00/server/*/run_record.jsonl")
            if any(record.read_text().count('"event": "round"') >= rounds for record in records):
                break
        faulty_run.kill(system.kit(site), word)(None, None)

    threading.Thread(target=wait_and_kill, daemon=True).start()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("poc")


@pytest.fixture(scope="module")
def system(folder):
    with deployed.poc_system(folder, TWO) as system:
        yield system


@pytest.fixture(scope="module")
def done(tmp_path_factory, system):
    """A run in a POC of its own, beside another system."""
    folder = tmp_path_factory.mktemp("run")
    body = str(tiny_job.initial_body(folder / "body.npz"))
    settings = {"num_rounds": ROUNDS, "warmup_epochs": 1, "initial_body": body}
    job = tiny_job.make(folder / "tiny", TWO, settings=settings)
    poc = PocRun(job, folder / "out", tuple(TWO), deployed.PROJECT, folder, {})
    kill(poc.system, ".worker_process", "south", 2)
    said = StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(poc_run.simulated_run, "prepare", lambda *_: None)  # the tiny sites have none
        before = users_configuration()
        poc_run.run(poc, Console(file=said, width=200), lambda: None)
    assert users_configuration() == before
    return poc, said.getvalue()


class TestPocRun:
    """The whole run, in which a site's process is killed."""

    def test_it_makes_every_round_once_though_a_process_was_killed(self, done):
        run = finished_run(done[0].folder)
        assert len(run.servers) == 2
        assert job_results.rounds_run(*run.servers) == ROUNDS
        first, second = (load(server / "models/last.npz").manifest for server in run.servers)
        assert second["round"] == ROUNDS
        assert second["history"] == [{"job": first["job"], "rounds": [0, first["round"]]}]

    def test_every_step_is_told_and_the_failure(self, done):
        lines = [line.split()[0] for line in done[1].splitlines() if line.endswith(" s")]
        once = ["submit", "train", "download"]
        assert lines == ["prepare", "start", *once, *once, "report", "stop", "clean"]
        assert "a process at south ended, and no log at hand says why" in done[1]

    def test_it_leaves_its_own_folder_alone_and_another_system_running(self, done, system):
        poc, _ = done
        left = sorted(path.name for path in poc.folder.iterdir())
        assert left == ["job", "results", "run.json", "sites"]
        assert not list(poc.job.glob("**/.__nvfl_sig.json"))
        assert not processes.processes(poc.folder)
        with FlareSession(system.lead) as session:
            assert session.sites() == set(TWO)


def users_configuration():
    """What stands in the user's own folder of FLARE."""
    folder = Path.home() / ".nvflare"
    return {path: path.read_bytes() for path in folder.glob("**/*") if path.is_file()}


def test_a_configuration_that_cannot_be_loaded_is_named_with_its_log(system, folder):
    """To an admin elsewhere, who has nothing but a startup kit."""
    job = tiny_job.make(folder / "spoilt", TWO, settings={"warmup_epochs": 1})
    config = job / "app_server/config/config_fed_server.conf"
    config.write_text(config.read_text().replace(".SurgicalAggregator", ".Nothing"))
    wanted = DeployedRun(job, folder / "spoilt/results")
    with FlareSession(system.lead) as session, pytest.raises(DeployedRunError) as raised:
        deployed_run.run(wanted, session, Steps(Console(file=StringIO())))
    said = str(raised.value)
    assert "has no attribute 'Nothing'" in said
    log = next(line for line in said.splitlines() if line.startswith("The log of server is "))
    path = Path(log.removeprefix("The log of server is "))
    assert "has no attribute 'Nothing'" in path.read_text()


def endless(system, folder):
    """Submit a job of very many rounds, and wait until it runs; its id."""
    settings = {"num_rounds": 500, "initial_body": str(system.folder.parent / "body.npz")}
    job = tiny_job.make(folder, TWO, settings=settings)
    with FlareSession(system.lead) as session:
        job_id = session.submit(job)
        deployed.wait(session, job_id, until=lambda meta: meta["status"] == "RUNNING")
    return job_id


class TestPocSystem:
    """In the order of a day: it runs, then it is stopped, then its server is killed."""

    def test_a_system_that_runs_is_not_started_again(self, system):
        with pytest.raises(PocError, match=r"runs already\. Say surgagg deploy poc stop"):
            system.start()
        assert system.running

    def test_stopped_twice_under_a_job_and_started_at_once(self, system, folder):
        job_id = endless(system, folder / "aborted")
        system.stop()
        system.stop()
        assert not system.running
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("", system.project.port))
            listener.listen()
            has_it = f"port {system.project.port}; process {os.getpid()} "
            with pytest.raises(PortError, match=has_it):
                system.start()
        assert not system.running
        system.start()
        with FlareSession(system.lead) as session:
            assert session.sites() == set(TWO)
            assert session.meta(job_id)["status"] == "FINISHED:ABORTED"

    def test_a_system_whose_server_was_killed_under_a_job_is_stopped_and_removed(
        self, system, folder
    ):
        job_id = endless(system, folder / "endless")
        left = processes.processes(system.folder.resolve())
        faulty_run.kill(system.kit("server"), ".server_train")(None, job_id)
        system.clean()
        assert not any(process.is_running() for process in left)
        assert not system.folder.exists()


def test_a_command_that_is_terminated_leaves_nothing_running(tmp_path):
    code = "from cxr_study.cli.main import main; main()"
    system = PocSystem(tmp_path / "poc")
    system.prepare(deployed.PROJECT)
    command = [sys.executable, "-c", code, "deploy", "poc", "start", "--folder", str(system.folder)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        while not system.running:
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert not system.running
