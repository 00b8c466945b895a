"""FLARE's simulator, patched: python -m cxr_study.runs.patched_simulator <args>.

It has two races: with them a run now and then ends early or never, where simulators start at the
same time. And its server waits at the end, when all sites have ended: up to 3 s to see that it
should stop, and 3 s for what is under way.
"""

from __future__ import annotations

import copy
import runpy
import socket
from collections.abc import Callable
from typing import Any

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.deployer import simulator_deployer
from nvflare.private.fed.app.simulator import simulator_runner

_reserved: list[socket.socket] = []


def reserve_ports(number: int) -> list[int]:
    """Ports that no program but FLARE's sites and server is given until this one ends.

    FLARE lets go of the ports that it has asked for, and a site's process listens on its one
    seconds later. Meanwhile another simulator's may have been given it. Who asks for one by its
    number and sets SO_REUSEADDR, as FLARE does, may listen there.
    """
    made = [socket.socket() for _ in range(number)]
    for held in made:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("", 0))
    _reserved.extend(made)
    return [held.getsockname()[1] for held in made]


_do_one_task = simulator_runner.SimulatorClientRunner.do_one_task


def run_site(
    runner: simulator_runner.SimulatorClientRunner, client: Any, *args: Any, **kwargs: Any
) -> Any:
    """Run a site's process as FLARE's `do_one_task` does, and tell it its own name.

    FLARE's threads, one a site, write the name into a shared dictionary and send that: a process
    may be told another site's name. That site takes part twice then, and its own never.
    """
    own = copy.copy(runner)
    own.build_ctx = dict(runner.build_ctx)
    return _do_one_task(own, client, *args, **kwargs)


class Monitor:
    """FLARE's monitor of its process, as the server of a simulator uses it, without its wait."""

    @staticmethod
    def run(main_func: Callable[[], Any], *, shutdown_grace_time: float, **how: Any) -> Any:
        """Run the server as FLARE does; when it returns, nothing is under way: no site is there."""
        return MainProcessMonitor.run(main_func, shutdown_grace_time=0, **how)


class Server(simulator_deployer.SimulatorServer):
    """FLARE's server in a simulator, which looks more often whether it should stop."""

    def __init__(self, **how: Any):
        super().__init__(**how)
        self.check_engine_frequency = 0.1  # seconds, in spite of its name


if __name__ == "__main__":
    simulator_runner.get_open_ports = reserve_ports
    simulator_deployer.get_open_ports = reserve_ports
    simulator_runner.SimulatorClientRunner.do_one_task = run_site
    simulator_runner.mpm = Monitor
    simulator_deployer.SimulatorServer = Server
    runpy.run_module("nvflare.private.fed.app.simulator.simulator", run_name="__main__")
