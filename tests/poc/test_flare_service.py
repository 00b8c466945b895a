"""The command of the systemd unit: what its end says of why it ended."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from nvflare.fuel.flare_api.flare_api import new_secure_session

from deployed import Network

UNIT = (Path(__file__).parents[2] / "poc" / "flare.service").read_text()
COMMAND = shlex.split(re.search(r"^ExecStart=(.*)$", UNIT, re.M)[1])


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    network = Network(tmp_path_factory.mktemp("network")).provision(["nih"])
    yield network
    network.stop()


def code_after(network, command):
    """Start the server as systemd does, give a command as the admin; the exit code."""
    with (network.server / "console.log").open("ab") as console:
        service = subprocess.Popen(
            COMMAND,
            cwd=network.server,
            env=network.environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    network.wait()
    session = new_secure_session(network.admin.name, str(network.admin))
    getattr(session, command)("server", wait=False)
    session.close()
    return service.wait(30)


def test_an_admins_restart_ends_it_with_an_error_for_systemd_to_start_it_again(network):
    assert code_after(network, "restart") == 1
    assert "Restart=on-failure" in UNIT


def test_an_admins_shutdown_ends_it_without_an_error(network):
    assert code_after(network, "shutdown") == 0
