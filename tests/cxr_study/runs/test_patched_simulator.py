"""The two races of FLARE's simulator, and its waits, that a run of ours does not have.

Each is reproduced with FLARE's own, too: where that fails, FLARE has mended it, and the patch goes.
"""

import inspect
import json
import pickle
import runpy
import shutil
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Client, Listener
from types import SimpleNamespace
from unittest.mock import Mock, create_autospec

import pytest
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.fuel.utils import network_utils
from nvflare.private.fed.server.fed_server import FederatedServer
from nvflare.private.fed.simulator.simulator_server import SimulatorServer

from cxr_study.runs import patched_simulator
from cxr_study.runs.finished_run import STATES, checkpoint_folder


def test_no_other_program_gets_a_reserved_port_but_a_site_listens_on_it_as_flare_does():
    ports = patched_simulator.reserve_ports(50)
    held = [patched_simulator._reserved.pop() for _ in ports]
    assert len({made.getsockname()[1] for made in held} & {*ports}) == 50
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("", ports[0]))
    with Listener(("localhost", ports[0])) as listener, Client(("localhost", ports[0])):
        listener.accept().close()
    for made in held:
        made.close()


def test_flares_own_ports_may_be_given_to_another_program_before_a_site_listens():
    (port,) = network_utils.get_open_ports(1)
    with socket.socket() as other:
        other.bind(("", port))


@pytest.mark.parametrize(("run_site", "names"), [
    (patched_simulator.run_site, 2), (patched_simulator._do_one_task, 1),
], ids=["patched", "FLARE's own"])  # fmt: skip
def test_each_site_receives_its_own_name(tmp_path, monkeypatch, run_site, names):
    sites, sending, received = ["north", "south"], threading.Barrier(2), []
    monkeypatch.setattr(sys, "executable", shutil.which("true"))  # as the sites' processes
    given = SimpleNamespace(workspace=str(tmp_path), log_config=None, set=None)
    shared = {"client_name": "none yet"}
    flares = patched_simulator.simulator_runner.SimulatorClientRunner
    runner = flares("", given, [], {}, given, shared)

    def send(data):  # when all sites are about to
        sending.wait(timeout=60)
        received.append(pickle.loads(pickle.dumps(data))["build_ctx"]["client_name"])

    process = SimpleNamespace(send=send, recv=Mock(side_effect=EOFError))
    runner._create_connection = lambda *_, **__: process
    urls = {"get_root_url_for_child": "tcp://server", "get_internal_listener_url": None}
    cell = Mock(**{f"{name}.return_value": url for name, url in urls.items()})

    def start(site):
        for folder in ("startup", "local"):
            (tmp_path / site / folder).mkdir(parents=True)
        client = SimpleNamespace(client_name=site, token="token", cell=cell)
        run_site(runner, client, 2, None, threading.Lock())

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(start, sites))
    assert len(received) == 2 and len({*received}) == names and {*received} <= {*sites}


def test_a_site_starts_with_its_state_of_an_earlier_run(tmp_path, monkeypatch):
    earlier, workspace = tmp_path / "earlier", tmp_path / "workspace"
    earlier.mkdir()
    for name in ("site_state.npz", "site_state_before.npz", "site_best.npz", ".half"):
        (earlier / name).write_text("of the earlier run")
    monkeypatch.setenv(STATES, json.dumps({"south": str(earlier)}))
    started = Mock(side_effect=lambda *_, **__: list(workspace.rglob("*.npz")))
    monkeypatch.setattr(patched_simulator, "_do_one_task", started)
    runner = SimpleNamespace(args=SimpleNamespace(workspace=str(workspace)), build_ctx={})

    def start(site):
        client = SimpleNamespace(client_name=site)
        return patched_simulator.run_site(runner, client, timeout=60.0)

    state = checkpoint_folder(workspace, "south")
    assert start("north") == []
    assert {*start("south")} == {state / "site_state.npz", state / "site_state_before.npz"}
    assert started.call_args.kwargs["timeout"] == 300.0
    (state / "site_state.npz").write_text("newer")
    start("south")
    assert (state / "site_state.npz").read_text() == "newer"


def test_the_server_does_not_wait_for_what_is_under_way_but_has_time_to_clean_up(monkeypatch):
    flares = create_autospec(MainProcessMonitor.run, return_value=7)
    monkeypatch.setattr(MainProcessMonitor, "run", flares)  # it would end this process
    how = {"run_dir": "here", "shutdown_grace_time": 3, "cleanup_grace_time": 6}
    assert patched_simulator.Monitor.run(main_func=print, **how) == 7
    flares.assert_called_once_with(print, **how | {"shutdown_grace_time": 0})


def test_the_server_sees_within_a_tenth_of_a_second_that_it_should_stop(monkeypatch):
    monkeypatch.setattr(SimulatorServer, "__init__", lambda server: None)
    assert patched_simulator.Server().check_engine_frequency == 0.1
    assert {"sleep", "check_engine_frequency"} <= {*SimulatorServer.start_run.__code__.co_names}


def test_flares_own_server_waits_twice():
    looks = inspect.signature(FederatedServer).parameters["check_engine_frequency"].default
    waits = inspect.getsource(patched_simulator.simulator_runner.SimulatorRunner.run_process)
    assert looks == 3.0 and "shutdown_grace_time=3" in waits


def test_flares_program_runs_with_all_of_it(monkeypatch):
    places = patched_simulator.simulator_runner, patched_simulator.simulator_deployer
    for place in places:
        monkeypatch.setattr(place, "get_open_ports", None)
    monkeypatch.setattr(places[0].SimulatorClientRunner, "do_one_task", None)
    monkeypatch.setattr(places[0], "mpm", None)
    monkeypatch.setattr(places[1], "SimulatorServer", SimulatorServer)
    ran = []
    monkeypatch.setattr(runpy, "run_module", lambda name, **_: ran.append(name))
    runpy.run_path(patched_simulator.__file__, run_name="__main__")
    assert [place.get_open_ports.__name__ for place in places] == ["reserve_ports"] * 2
    assert places[0].SimulatorClientRunner.do_one_task.__name__ == "run_site"
    assert places[0].mpm.__name__ == "Monitor"
    assert "mpm" in places[0].SimulatorRunner.run_process.__code__.co_names
    assert places[1].SimulatorServer.__name__ == "Server"
    assert "SimulatorServer" in places[1].SimulatorDeployer.create_fl_server.__code__.co_names
    assert ran == ["nvflare.private.fed.app.simulator.simulator"]
