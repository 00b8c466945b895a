"""A command that waits for a server ends soon after a signal, and says what it was doing."""

import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import deployed
import tiny_job
from cxr_study.deployment.poc_project import PocProject
from cxr_study.deployment.processes import free_port
from simulated import TWO

SOON = 5.0
"""Seconds."""

CODE = "from cxr_study.cli.main import main; main()"


@pytest.fixture(scope="module")
def silent(tmp_path_factory):
    """An admin's kit, to a port where somebody accepts connections and never says a word."""
    with socket.socket() as listener:
        port = free_port()
        listener.bind(("localhost", port))
        listener.listen()
        folder = tmp_path_factory.mktemp("silent")
        project = PocProject.read(deployed.PROJECT).changed(port=port)
        project.provision(folder)
        yield folder / project.name / "prod_00" / project.lead


@contextmanager
def command(*arguments):
    """`surgagg deploy ...` without a terminal; always ended."""
    words = [sys.executable, "-c", CODE, "deploy", *map(str, arguments)]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process, sent):
    """What a process says that ends soon after a signal, with the signal's exit code."""
    process.send_signal(sent)
    said, _ = process.communicate(timeout=SOON)
    assert process.returncode == 128 + sent, said
    return said


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0.5, 2.0, 4.0, 8.0, 13.0])
def test_it_ends_while_it_connects_to_a_port_that_never_answers(silent, tmp_path, sent, seconds):
    with command("status", "--kit", silent) as process:
        time.sleep(1.5)  # Python's own start
        time.sleep(seconds)
        said = ended(process, sent)
    assert "connect   lead@university.org, interrupted" in said or seconds < 3
    assert "Traceback" not in said
