"""A POC on this machine: started, stopped, killed, removed."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from nvflare.fuel.flare_api.flare_api import new_secure_session
from rich.console import Console

import deployed
import faulty_run
import tiny_job
from cxr_deployment import job_watch, poc_run, processes
from cxr_deployment.deployed_run import DeployedRun, DeployedRunError
from cxr_deployment.flare_session import FlareSession
from cxr_deployment.poc_system import PocError, PocSystem
from cxr_deployment.processes import PortError
from cxr_study.common.progress import Steps
from cxr_study.jobs.job import Job
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import finished_run
from cxr_study.runs.run_request import RunRequest
from simulated import TWO

UNIT = (Path(__file__).parents[2] / "poc" / "flare.service").read_text()
COMMAND = shlex.split(re.search(r"^ExecStart=(.*)$", UNIT, re.M)[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("poc")


@pytest.fixture(scope="module")
def system(folder):
    with deployed.poc_system(folder, TWO) as system:
        yield system


def users_configuration():
    """What stands in the user's own folder of FLARE."""
    folder = Path.home() / ".nvflare"
    return {path: path.read_bytes() for path in folder.glob("**/*") if path.is_file()}


def test_a_run_in_a_poc_of_its_own_leaves_its_folder_alone(system, tmp_path, monkeypatch):
    """And another system running."""
    body = str(tiny_job.initial_body(tmp_path / "body.npz"))
    settings = {"num_rounds": 2, "warmup_epochs": 1, "initial_body": body}
    job = tiny_job.make(tmp_path / "tiny", TWO, settings=settings)
    request = RunRequest(Job.of(job), tmp_path / "out", tmp_path)
    monkeypatch.setattr(poc_run.simulated_run, "prepare", lambda *_: None)  # it has no images
    output, before = StringIO(), users_configuration()
    poc_run.run(request, deployed.PROJECT, Console(file=output, width=200))
    assert users_configuration() == before
    done = [line.split()[0] for line in output.getvalue().splitlines() if line.endswith(" s")]
    assert done == ["prepare", "start", "submit", "train", "download", "clean"]
    assert job_results.rounds_run(*finished_run(request.folder).servers) == 2
    left = sorted(path.name for path in request.folder.iterdir())
    assert left == ["job", "results", "run.json", "sites"]
    assert not list((request.folder / "job").glob("**/.__nvfl_sig.json"))
    assert not processes.find_processes(request.folder)
    with FlareSession(system.lead) as session:
        assert session.sites() == set(TWO)


SPOILT = {
    (".SurgicalAggregator", ".Nothing"): "has no attribute 'Nothing'",
    ('.BestModelSelector", "args": {}', '.BestModelSelector", "args": {"workflows": 5}'): (
        "BestModelSelector failed: TypeError: argument of type 'int' is not iterable"
    ),
}
"""What is put in place of what: a class that is not there, one that raises at every event."""


@pytest.mark.parametrize(("spoilt", "reason"), SPOILT.items(), ids=["class", "events"])
def test_a_useless_configuration_is_named_and_not_retried(system, folder, tmp_path, spoilt, reason):
    """To an admin elsewhere, who has nothing but a startup kit."""
    settings = {"warmup_epochs": 1, "initial_body": str(folder / "body.npz"), "continues": "x"}
    job = tiny_job.make(tmp_path, TWO, settings=settings)
    config = job / "app_server/config/config_fed_server.json"
    config.write_text(config.read_text().replace(*spoilt))
    steps = Steps(Console(file=StringIO()))
    with FlareSession(system.lead) as session, pytest.raises(DeployedRunError) as raised:
        DeployedRun(session, steps, job.parent).run()
    message = str(raised.value)
    assert reason in message
    log = next(line for line in message.splitlines() if line.startswith("The log of server is "))
    path = Path(log.removeprefix("The log of server is ").partition(",")[0])
    assert reason in path.read_text()
    assert len(list((tmp_path / "results").glob("*/workspace"))) == 1


def test_a_job_that_waits_for_a_site_says_so_and_until_when(system, tmp_path):
    job = tiny_job.make(tmp_path, TWO)
    processes.terminate(system.kit("south"))

    def say(text):
        if " try " in text:
            raise InterruptedError(text)

    with FlareSession(system.lead) as session:
        job_id = session.submit(job)
        with pytest.raises(InterruptedError, match=r"only 1 of the 2 sites .* try \d of 10, the n"):
            job_watch.watch(session, job_id, print, say)
        session.abort(job_id, 60.0)
    processes.start(system.kit("south"), system.environment)
    system._wait(system.project, 300)


def endless(system, folder):
    """Submit a job of very many rounds, and wait until it runs; its id."""
    settings = {"num_rounds": 500, "initial_body": str(system.folder.parent / "body.npz")}
    job = tiny_job.make(folder, TWO, settings=settings)
    with FlareSession(system.lead) as session:
        job_id = session.submit(job)
        deployed.wait(session, job_id, holds=lambda meta: meta["status"] == "RUNNING")
    return job_id


class TestPocSystem:
    """In this order: it runs, it is stopped, its server is killed."""

    def test_stopped_twice_under_a_job_and_started_at_once(self, system, folder):
        with pytest.raises(PocError, match=r"is running already\. Run surgagg deploy poc stop"):
            system.start()
        assert system.running
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

    def test_a_system_whose_server_was_killed_under_a_job_is_removed(self, system, folder):
        job_id = endless(system, folder / "endless")
        left = processes.find_processes(system.folder.resolve())
        faulty_run.kill(system.kit("server"), ".server_train")(None, job_id)
        system.clean()
        assert not any(process.is_running() for process in left)
        assert not system.folder.exists()


def test_a_command_that_is_terminated_leaves_nothing_running(tmp_path):
    code = "from cxr_study.cli import start; start()"
    system = PocSystem(tmp_path / "poc")
    system.prepare(deployed.PROJECT)
    command = [sys.executable, "-c", code, "deploy", "poc", "start", "--folder", str(system.folder)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        while not system.running:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 128 + signal.SIGTERM
    assert not system.running


def test_an_admins_restart_ends_a_service_with_an_error_for_systemd_a_shutdown_without(tmp_path):
    assert "Restart=on-failure" in UNIT
    network = deployed.Network(tmp_path / "network").provision(["nih"])
    try:
        for order, code in {"restart": 1, "shutdown": 0}.items():
            with (network.server / "console.log").open("ab") as console:
                service = subprocess.Popen(
                    COMMAND, cwd=network.server, env=network.environment, start_new_session=True,
                    stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                )  # fmt: skip
            network.wait()
            session = new_secure_session(
                network.admin.name, str(network.admin), timeout=60, command_timeout=60
            )
            getattr(session, order)("server", wait=False)
            session.close()
            assert service.wait(120) == code
    finally:
        network.stop()
