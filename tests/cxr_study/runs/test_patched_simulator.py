"""The two races of FLARE's simulator that a run of ours does not have."""

import pickle
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Client, Listener
from types import SimpleNamespace

import pytest

from cxr_study.runs import patched_simulator


def test_nobody_else_is_given_a_reserved_port_but_a_site_listens_on_it_as_flare_does():
    ports = patched_simulator.reserve_ports(50)
    held = [patched_simulator._reserved.pop() for _ in ports]
    assert len({made.getsockname()[1] for made in held} & {*ports}) == 50
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("", ports[0]))
    with Listener(("localhost", ports[0])) as listener, Client(("localhost", ports[0])):
        listener.accept().close()
    for made in held:
        made.close()


class Connection:
    """To a site's process; sends when all sites are about to."""

    def __init__(self, sending, told):
        self.sending = sending
        self.told = told

    def send(self, data):
        self.sending.wait(timeout=10)
        self.told.append(pickle.loads(pickle.dumps(data))["build_ctx"]["client_name"])

    def recv(self):
        raise EOFError


def test_each_site_is_told_its_own_name(tmp_path, monkeypatch):
    sites, sending, told = ["north", "south"], threading.Barrier(2), []
    monkeypatch.setattr(sys, "executable", shutil.which("true"))  # as the sites' processes
    place = SimpleNamespace(workspace=str(tmp_path), log_config=None, set=None)
    runner = patched_simulator.simulator_runner.SimulatorClientRunner(
        "", place, [], {}, place, {"client_name": "none yet"}
    )
    runner._create_connection = lambda *_, **__: Connection(sending, told)
    cell = SimpleNamespace(
        get_root_url_for_child=lambda: "tcp://server", get_internal_listener_url=lambda: None
    )

    def start(site):
        for folder in ("startup", "local"):
            (tmp_path / site / folder).mkdir(parents=True)
        client = SimpleNamespace(client_name=site, token="token", cell=cell)
        patched_simulator.run_site(runner, client, 2, None, threading.Lock())

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(start, sites))
    assert sorted(told) == sites


INSTALLED = """
import runpy, sys
from nvflare.private.fed.app.deployer import simulator_deployer
from nvflare.private.fed.app.simulator import simulator_runner

class Runner:
    def __init__(self, **arguments):
        pass

    def run(self):
        for place in (simulator_runner, simulator_deployer):
            print(place.get_open_ports.__name__)
        print(simulator_runner.SimulatorClientRunner.do_one_task.__name__)

simulator_runner.SimulatorRunner = Runner
sys.argv[1:] = ["job"]
runpy.run_module("cxr_study.runs.patched_simulator", run_name="__main__")
"""


def test_flares_program_runs_with_both():
    command = [sys.executable, "-c", INSTALLED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["reserve_ports", "reserve_ports", "run_site"], done.stderr
