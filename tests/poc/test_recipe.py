"""The recipe in FLARE's POC: real services with certificates, a job that is submitted and run."""

import json

import pytest

from cxr_deployment.processes import PortError, check_free, terminate
from simulated import TWO, by_recipe

SETTINGS = {"num_rounds": 8, "patience": 1, "warmup_epochs": 1}
PORT = 8002  # of every POC's server


def test_a_job_stops_early_and_a_site_receives_its_own_configuration_alone(tmp_path):
    try:
        check_free(PORT)
    except PortError as error:
        pytest.skip(str(error))
    (tmp_path / "home").mkdir()
    own = {"HOME": str(tmp_path / "home"), "NVFLARE_POC_WORKSPACE": str(tmp_path / "workspace")}
    try:
        found = by_recipe("poc", tmp_path, TWO, SETTINGS, **own)
    finally:
        terminate(tmp_path / "workspace")
    assert found["status"] == "FINISHED:COMPLETED"
    assert found["classes"] == sorted({name for site in TWO.values() for name in site["classes"]})
    record = [json.loads(line) for line in found["record"]]
    rounds = [event["round"] for event in record if event["event"] == "round"]
    stopped = [event["round"] for event in record if event["event"] == "stopped"]
    assert stopped == [rounds[-1]] and rounds[-1] < 7
    for site, other, rate in ("north", "south", 0.3), ("south", "north", 0.001):
        received = found["received"][site]
        client = json.loads(received["config_fed_client.json"])
        assert client["learning_rate"] == rate
        assert "config_fed_server.json" not in received
        assert not [name for name, text in received.items() if other in text]
    assert found["submitted"] in ("SUBMITTED", "APPROVED", "DISPATCHED", "RUNNING")  # by a kit
