"""A command that waits for a server ends soon after a signal, and says what it was doing."""

import signal
import socket
import time

import pytest

import deployed
from cxr_study.deployment.poc_project import PocProject
from cxr_study.deployment.processes import free_port
from shell import command, ended


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


@pytest.mark.parametrize(("seconds", "sent"), [
    (0.0, signal.SIGINT),
    (1.5, signal.SIGTERM),
    (3.0, signal.SIGINT),
    (3.0, signal.SIGTERM),
    (9.0, signal.SIGINT),
])  # fmt: skip
def test_it_ends_while_it_connects_to_a_port_that_never_answers(silent, tmp_path, sent, seconds):
    with command("status", "--kit", silent) as process:
        time.sleep(1.0 + seconds)  # Python's own start
        said = ended(process, sent)
    assert "connect   lead@university.org, interrupted" in said or seconds < 2
