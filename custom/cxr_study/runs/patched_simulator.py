"""FLARE's simulator without two of its races: python -m cxr_study.runs.patched_simulator <args>.

With them, a run now and then ends early or never, where simulators start at the same time.
"""

from __future__ import annotations

import copy
import runpy
import socket
from typing import Any

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


if __name__ == "__main__":
    simulator_runner.get_open_ports = reserve_ports
    simulator_deployer.get_open_ports = reserve_ports
    simulator_runner.SimulatorClientRunner.do_one_task = run_site
    runpy.run_module("nvflare.private.fed.app.simulator.simulator", run_name="__main__")
