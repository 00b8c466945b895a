"""FLARE's simulator with patches: python -m cxr_study.runs.patched_simulator <args>.

Arguments are those of `nvflare simulator`. Two race conditions in FLARE 2.9 are patched, by which a
run ends early or never ends if several simulators start at the same time: see `reserve_ports` and
`run_site`. Two waits of the server after the last site has ended, of up to 3 s each, are shortened:
see `Monitor` and `Server`. Sites start with the states of an earlier run, see `restore`.
"""

from __future__ import annotations

import copy
import json
import os
import runpy
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.deployer import simulator_deployer
from nvflare.private.fed.app.simulator import simulator_runner

from cxr_study.runs.finished_run import STATES, checkpoint_folder
from surgical_aggregation.site.site_memory import BEST_FILE, LAST_FILE

_START_SECONDS = 300.0
"""Seconds in which a site's process must connect; FLARE's 60 are few where many start at once."""

_reserved: list[socket.socket] = []
"""Sockets that keep the ports reserved until this process ends."""


def reserve_ports(number: int) -> list[int]:
    """Reserve free ports until this process ends; replaces FLARE's `get_open_ports`.

    FLARE releases the ports that it finds, and a site's process binds its port seconds later. In
    the meantime the system can assign the port to another simulator. Here the sockets stay bound,
    so no port is assigned twice. FLARE can still listen on one: it binds by number, with
    SO_REUSEADDR.

    Args:
        number: How many.
    """
    sockets = [socket.socket() for _ in range(number)]
    for reserved in sockets:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("", 0))
    _reserved.extend(sockets)
    return [reserved.getsockname()[1] for reserved in sockets]


_do_one_task = simulator_runner.SimulatorClientRunner.do_one_task


def run_site(
    runner: simulator_runner.SimulatorClientRunner, client: Any, *args: Any, **kwargs: Any
) -> Any:
    """Run a site's process, with its own name and state; replaces FLARE's `do_one_task`.

    FLARE's threads, one per site, write the site's name into a shared dictionary and send it to the
    process. A process can get the name of another site, which then participates twice while its own
    site never does. Here each thread has a copy of the dictionary.
    """
    own = copy.copy(runner)
    own.build_ctx = dict(runner.build_ctx)
    restore(client.client_name, Path(runner.args.workspace))
    kwargs["timeout"] = max(kwargs.get("timeout", 0.0), _START_SECONDS)
    return _do_one_task(own, client, *args, **kwargs)


def restore(site: str, workspace: Path) -> None:
    """Copy a site's state of an earlier run into the workspace, which FLARE has emptied.

    Args:
        site: Its name; if `STATES` does not have it, nothing is copied.
        workspace: The simulator's.
    """
    target = checkpoint_folder(workspace, site)
    earlier = json.loads(os.environ.get(STATES, "{}")).get(site)
    if earlier and not target.exists():
        shutil.copytree(earlier, target, ignore=shutil.ignore_patterns(".*", LAST_FILE, BEST_FILE))


class Monitor:
    """FLARE's process monitor for the simulator's server, without the grace time at shutdown."""

    @staticmethod
    def run(main_func: Callable[[], Any], *, shutdown_grace_time: float, **options: Any) -> Any:
        """Run the server; when it returns, all sites have ended, so nothing needs grace time."""
        return MainProcessMonitor.run(main_func, shutdown_grace_time=0, **options)


class Server(simulator_deployer.SimulatorServer):
    """FLARE's simulator server, which checks every 0.1 s whether it should stop."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.check_engine_frequency = 0.1  # a period in seconds, in spite of its name


if __name__ == "__main__":
    simulator_runner.get_open_ports = reserve_ports
    simulator_deployer.get_open_ports = reserve_ports
    simulator_runner.SimulatorClientRunner.do_one_task = run_site
    simulator_runner.mpm = Monitor
    simulator_deployer.SimulatorServer = Server
    runpy.run_module("nvflare.private.fed.app.simulator.simulator", run_name="__main__")
