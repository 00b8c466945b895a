"""Two sites behind a relay: they train what they train without one."""

import json
import os
from types import SimpleNamespace

import psutil
import pytest

import deployed
import tiny_job
from cxr_deployment import processes
from cxr_deployment.flare_session import FlareSession
from simulated import TWO, UNDISTURBED, same, undisturbed_run
from surgical_aggregation.site.contract.site_policy import NO_POLICY

HELD = "south:1:late"
"""So long the job runs at least."""


class RelayNetwork(deployed.Network):
    """A network whose sites connect to a relay, and only the relay connects to the server."""

    @property
    def relay(self):
        return self.kit("relay")

    @property
    def relay_port(self):
        config = json.loads((self.relay / "local/comm_config.json").read_text())
        return config["internal"]["resources"]["port"]

    def wanted(self, sites):
        project = super().wanted(sites)
        participants = project.content["participants"]
        for participant in participants:
            if participant["type"] == "client":
                participant["connect_to"] = {"name": "relay"}
        listening = {"default_host": "localhost", "port": processes.free_port(), "scheme": "http"}
        participants.append({
            "name": "relay", "type": "relay", "org": "network",
            "listening_host": {**listening, "connection_security": "mtls"},
            "connect_to": {"name": "server", "connection_security": "mtls"},
        })  # fmt: skip
        return project

    def connections(self, port):
        """Whose processes are connected to a port: names of kits, and "admin" for this process."""
        kits = self.relay.parent.iterdir()
        owner = {p.pid: kit.name for kit in kits for p in processes.find_processes(kit)}
        owner[os.getpid()] = "admin"
        return {
            owner.get(connection.pid, str(connection))
            for connection in psutil.net_connections("tcp")
            if connection.raddr and connection.raddr.port == port
            if connection.status == psutil.CONN_ESTABLISHED
        }


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The running network, localised as always; a relay's kit needs nothing. Always stopped."""
    folder = tmp_path_factory.mktemp("relay") / "network"
    with RelayNetwork(folder).provision(list(TWO)) as network:
        network.localise(dict.fromkeys(TWO, NO_POLICY), byoc="anyone")
        processes.start(network.relay, network.environment)
        network.start_server()
        network.start_sites()
        yield network


@pytest.fixture(scope="module")
def run(network):
    """What the job left, and whose processes were connected to server and relay while it ran."""
    job = tiny_job.make(network.folder.parent / "job", TWO, settings=UNDISTURBED, plan=[HELD])
    with FlareSession(network.lead) as session:
        job_id = session.submit(job)
        deployed.wait(session, job_id, holds=lambda _: deployed.rounds(network, job_id))
        return SimpleNamespace(
            at_server=network.connections(network.project.port),
            at_relay=network.connections(network.relay_port),
            left=deployed.ended(session, network, job_id),
        )


def test_only_the_relay_is_connected_to_the_server_and_all_sites_to_the_relay(network, run):
    assert run.at_server == {"relay", "admin"}
    assert run.at_relay == set(TWO)
    for site in TWO:
        kit = json.loads((network.kit(site) / "local/relay__resources.json").read_text())
        assert kit["relay_config"]["address"] == f"localhost:{network.relay_port}"


def test_a_relay_takes_nobody_without_a_certificate_of_the_network(network):
    assert deployed.keeps_open(network.relay_port, network.kit("north"))
    assert not deployed.keeps_open(network.relay_port, seconds=60)


def test_models_are_those_of_sites_without_a_relay_bit_for_bit(run, tmp_path_factory):
    relayed, direct = run.left, undisturbed_run(tmp_path_factory, "undisturbed")
    assert relayed.status == "FINISHED:COMPLETED"
    assert relayed.last.manifest["classes"] == direct.last.manifest["classes"]
    assert same(relayed.last, direct.last) and same(relayed.best, direct.best)


def test_nothing_of_it_is_left_running_once_it_is_stopped(network):
    assert processes.find_processes(network.relay)
    network.stop()
    assert not network.running
    assert processes.connection_error("localhost", network.relay_port)
