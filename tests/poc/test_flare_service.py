"""The command of the systemd unit: what its end says of why it ended."""

import re
import shlex
import subprocess
from pathlib import Path

from nvflare.fuel.flare_api.flare_api import new_secure_session

from deployed import Network

UNIT = (Path(__file__).parents[2] / "poc" / "flare.service").read_text()
COMMAND = shlex.split(re.search(r"^ExecStart=(.*)$", UNIT, re.M)[1])


def test_an_admins_restart_ends_it_with_an_error_for_systemd_and_a_shutdown_without(tmp_path):
    assert "Restart=on-failure" in UNIT
    network = Network(tmp_path / "network").provision(["nih"])
    try:
        for said, code in {"restart": 1, "shutdown": 0}.items():
            with (network.server / "console.log").open("ab") as console:
                service = subprocess.Popen(
                    COMMAND, cwd=network.server, env=network.environment, start_new_session=True,
                    stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                )  # fmt: skip
            network.wait()
            session = new_secure_session(network.admin.name, str(network.admin))
            getattr(session, said)("server", wait=False)
            session.close()
            assert service.wait(30) == code
    finally:
        network.stop()
