"""What an operator sees and does: watch, status, signals, a full disk, a site that is killed."""

import re
import resource
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import StringIO

import pytest
from rich.console import Console

import deployed
import tiny_job
from cxr_deployment import local_workspaces, processes
from cxr_deployment.deployed_run import DeployedRun, DeployedRunError
from cxr_deployment.flare_session import FlareSession
from cxr_deployment.poc_system import PocProject
from cxr_study.common.progress import Steps
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import finished_run
from simulated import TWO
from typed import answer

CODE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
class Begun:  # when it imports, it has its handlers of signals
    def find_spec(self, name, *_):
        if name == "cxr_study.cli.main":
            print("begun", flush=True)
sys.meta_path.insert(0, Begun())
from cxr_study.cli import start
start()
"""

SOON = 60.0
"""Seconds in which a command ends that was sent a signal."""


@contextmanager
def command(*arguments):
    """`surgagg deploy ...`; always ended."""
    words = [sys.executable, "-c", CODE, "deploy", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process, sent, soon=SOON):
    """What a process says that ends soon after a signal, with the signal's exit code."""
    process.send_signal(sent)
    output, _ = process.communicate(timeout=soon)
    assert process.returncode == 128 + sent and "Traceback" not in output, output
    return output


@pytest.fixture(scope="module")
def silent(tmp_path_factory):
    """An admin's kit, to a port where somebody accepts connections and never says a word."""
    with socket.socket() as listener:
        port = processes.free_port()
        listener.bind(("localhost", port))
        listener.listen()
        folder = tmp_path_factory.mktemp("silent")
        project = PocProject.read(deployed.PROJECT).changed(port=port)
        project.provision(folder)
        yield folder / project.name / "prod_00" / project.lead, listener


@pytest.mark.parametrize(("seconds", "sent"), [
    (0.2, signal.SIGINT),  # it imports; at once it might not have begun to
    (1.5, signal.SIGTERM),
    (3.0, signal.SIGINT),
    (3.0, signal.SIGTERM),
])  # fmt: skip
def test_it_ends_while_it_connects_to_a_port_that_never_answers(silent, sent, seconds):
    with command("status", "--kit", silent[0]) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(seconds)
        ended(process, sent)


def test_it_says_that_it_was_connecting_when_it_was_interrupted(silent):
    kit, listener = silent
    with suppress(BlockingIOError):
        listener.setblocking(False)
        while True:  # those of other commands
            listener.accept()[0].close()
    listener.settimeout(120)
    with command("status", "--kit", kit) as process:
        with listener.accept()[0]:
            time.sleep(1)
            output = ended(process, signal.SIGINT)
    assert "connect   lead@university.org, interrupted" in output


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    with deployed.poc_system(tmp_path_factory.mktemp("poc"), TWO) as system:
        yield system


@pytest.fixture
def job(system, tmp_path):
    """Makes a tiny job."""

    def make(plan=None, **settings):
        body = str(system.folder.parent / "body.npz")
        settings = {"num_rounds": 3, "initial_body": body, **settings}
        return tiny_job.make(tmp_path, TWO, settings=settings, plan=plan)

    return make


def server_process(system):
    found = processes.find_processes(system.server)
    return next(process for process in found if processes.any_runs([process], *processes.SERVER))


def test_a_full_disk_at_the_server_is_waited_out(system, job, tmp_path):
    """No file of its process grows meanwhile: it can note nobody's command, and so does none."""
    server, waits = server_process(system), []
    unable = "cannot do what lead@university.org asks: error: Exception Occurred: OSErr"

    def said(reason, begun):
        return any(reason in wait for wait in waits[begun:])

    def limit(size):
        server.rlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    with FlareSession(system.lead, on_wait=waits.append, pauses=[1.0]) as session:
        job_folder = job()
        job_id = session.submit(job_folder)
        deployed.wait(session, job_id)
        for ask, reason in (
            (lambda: session.meta(job_id), unable),
            (lambda: session.submit(job_folder), ""),  # or it does not answer
        ):
            begun = len(waits)
            limit(0)
            with ThreadPoolExecutor(1) as pool:
                try:
                    answered = pool.submit(ask)
                    while not said(reason, begun) and not answered.done():
                        time.sleep(0.1)
                finally:
                    limit(resource.RLIM_INFINITY)
                answered.result(60)
            assert said(reason, begun)
        submitted = [meta["job_id"] for meta in session.jobs()]
        assert len(submitted) == len({*submitted}) == 2  # none twice
        deployed.wait(session, submitted[1])


def run(system, job, **options):
    """Run a job as `deploy submit` does; what it said, and what it failed by."""
    output = StringIO()
    steps = Steps(Console(file=output, width=300))
    with FlareSession(system.lead) as session:
        try:
            DeployedRun(session, steps, job.parent, pauses=[0.0], **options).run()
        except DeployedRunError as error:
            return f"{output.getvalue()}{error}"
    return output.getvalue()


@pytest.mark.parametrize("task", ["1", "test"])
@pytest.mark.parametrize("hand", [True, False])
def test_the_site_whose_process_was_killed_is_named(system, job, hand, task):
    places = local_workspaces.workspaces(system.lead) if hand else {}
    assert set(places) == ({"server", *TWO} if hand else set())
    output = run(system, job([f"south:{task}:kill"]), retries=0, workspaces=places)
    assert re.search(rf"a process at {'' if hand else '(north or )?'}south ended", output), output


def test_a_site_that_is_rebooted_takes_part_in_the_job_that_continues(system, job, tmp_path):
    """It cannot rejoin the job, which ends after `site_silence`, or at once if it says goodbye."""
    made = job(["south:1:hold"], site_silence=20)

    def reboot():
        deployed.until((tmp_path / "struck/south-1-hold").exists, 180)
        processes.terminate(system.kit("south"))
        processes.start(system.kit("south"), system.environment)

    with ThreadPoolExecutor(1) as pool:
        rebooted = pool.submit(reboot)
        output = run(system, made)
        rebooted.result()
    assert re.search("south: no heartbeat for 20 s|a process at south ended", output)
    first, second = finished_run(tmp_path).servers
    assert [job_results.rounds_run(server) for server in (first, second)] == [1, 2]


def test_a_job_is_watched_from_its_id_and_again_from_its_folder(system, job, tmp_path):
    made = job(["south:1:hold"])
    with FlareSession(system.lead) as session:
        job_id = session.submit(made)
        out = ("watch", job_id, "--kit", system.lead, "--out", tmp_path / "out")
        with command(*out) as watching:
            deployed.until((tmp_path / "struck/south-1-hold").exists, 180)
            assert any("training: round 1" in line for line in watching.stdout)
            text = ended(watching, signal.SIGTERM)
        assert f"job {job_id} continues without this command" in text
        assert session.meta(job_id)["status"] == "RUNNING"
        server_process(system).kill()
    text = answer("deploy", "watch", tmp_path / "out", "--kit", system.lead, "--retries", 0, code=1)
    assert "the server was restarted while it ran" in text
    system._wait(system.project, 300)
    text = " ".join(answer("deploy", "status", "--kit", system.lead).split())
    assert re.search(r"server: up since [-\d]+ [\d:]+; FLARE 2\.9\.\d; [\d,]+ MB free", text), text
    assert re.search(r"north: connected, last seen \d+ s ago; FLARE 2\.9", text)
    assert re.search(rf"{job_id} surgical RUNNING: the server was restarted while it ran", text)
