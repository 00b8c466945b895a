"""Four sites behind a relay: they train what they train without one."""

import json
import os
from types import SimpleNamespace

import psutil
import pytest

import deployed
import tiny_job
from cxr_study.deployment import processes
from cxr_study.deployment.flare_session import FlareSession
from simulated import same
from surgical_aggregation.site.contract.site_policy import NO_POLICY

SITES = {
    "north": {"classes": ["Edema", "Nodule/Mass"], "images": 40},
    "east": {"classes": ["Edema", "Fracture"], "images": 24},
    "south": {"classes": ["Fracture", "Support Devices"], "images": 16},
    "west": {"classes": ["Edema", "Hernia"], "images": 24},
}
SETTINGS = {
    "num_rounds": 5, "epochs": 400, "learning_rate": 0.01, "warmup_epochs": 1, "threads": 1,
    "tracking": "none",
}  # fmt: skip


class RelayNetwork(deployed.Network):
    """A network whose sites connect to a relay, and only the relay connects to the server."""

    @property
    def relay(self):
        return self.kit("relay")

    @property
    def relay_port(self):
        return json.loads((self.relay / "local/comm_config.json").read_text())["internal"][
            "resources"
        ]["port"]

    def wanted(self, sites):
        project = super().wanted(sites)
        participants = project.content["participants"]
        for participant in participants:
            if participant["type"] == "client":
                participant["connect_to"] = {"name": "relay"}
        listening = {"default_host": "localhost", "port": processes.free_port(), "scheme": "http"}
        participants.append(
            {
                "name": "relay", "type": "relay", "org": "network",
                "listening_host": {**listening, "connection_security": "mtls"},
                "connect_to": {"name": "server", "connection_security": "mtls"},
            }
        )  # fmt: skip
        return project

    def connections(self, port):
        """Whose processes are connected to a port: names of kits, and "admin" for this process."""
        kits = self.relay.parent.iterdir()
        owner = {p.pid: kit.name for kit in kits for p in processes.processes(kit)}
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
    network = RelayNetwork(tmp_path_factory.mktemp("relay") / "network").provision(list(SITES))
    network.localise(dict.fromkeys(SITES, NO_POLICY), byoc="anyone")
    try:
        processes.start(network.relay, network.environment)
        network.start_server()
        network.start_sites()
        yield network
    finally:
        network.stop()


@pytest.fixture(scope="module")
def runs(network):
    """What the job left through the relay, and on sites that are connected to the server.

    And whose processes were connected to server and relay while it ran.
    """
    job = tiny_job.make(network.folder.parent / "job", SITES, settings=SETTINGS)
    with (
        deployed.poc_system(network.folder.parent / "direct", SITES) as system,
        FlareSession(system.lead) as other,
        FlareSession(network.lead) as session,
    ):
        direct_id, job_id = other.submit(job), session.submit(job)
        deployed.wait(session, job_id, until=lambda _: deployed.rounds(network, job_id))
        return SimpleNamespace(
            at_server=network.connections(network.project.port),
            at_relay=network.connections(network.relay_port),
            relayed=deployed.ended(session, network, job_id),
            direct=deployed.ended(other, system, direct_id),
        )


def test_only_the_relay_is_connected_to_the_server_and_all_sites_to_the_relay(network, runs):
    assert runs.at_server == {"relay", "admin"}
    assert runs.at_relay == set(SITES)
    for site in SITES:
        kit = json.loads((network.kit(site) / "local/relay__resources.json").read_text())
        assert kit["relay_config"]["address"] == f"localhost:{network.relay_port}"


def test_a_relay_takes_nobody_without_a_certificate_of_the_network(network):
    assert deployed.keeps_open(network.relay_port, network.kit("north"))
    assert not deployed.keeps_open(network.relay_port)


def test_models_are_those_of_sites_connected_to_the_server_bit_for_bit(runs):
    relayed, direct = runs.relayed, runs.direct
    assert relayed.status == direct.status == "FINISHED:COMPLETED"
    assert set(relayed.last.manifest["classes"]) == {
        name for site in SITES.values() for name in site["classes"]
    }
    assert same(relayed.last, direct.last) and same(relayed.best, direct.best)


def test_nothing_of_it_is_left_running_once_it_is_stopped(network):
    assert processes.processes(network.relay)
    network.stop()
    assert not network.running
    assert processes.unreachable("localhost", network.relay_port)
