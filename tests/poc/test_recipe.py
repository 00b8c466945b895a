"""The recipe in FLARE's POC: real services with certificates, a job that is submitted and run."""

import json

import pytest

from cxr_study.deployment.processes import PortError, check_free, end
from simulated import SITES, by_recipe

SETTINGS = {"num_rounds": 8, "patience": 1, "warmup_epochs": 1}
PORT = 8002  # of every POC's server


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    try:
        check_free(PORT)
    except PortError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("poc")
    (folder / "home").mkdir()
    own = {"HOME": str(folder / "home"), "NVFLARE_POC_WORKSPACE": str(folder / "workspace")}
    try:
        return by_recipe("poc", folder, {s: SITES[s] for s in ("north", "south")}, SETTINGS, **own)
    finally:
        end(folder / "workspace")


def test_a_job_that_stops_early_is_completed_and_leaves_the_union_of_the_classes(found):
    assert found["status"] == "FINISHED:COMPLETED"
    union = sorted({name for site in ("north", "south") for name in SITES[site]["classes"]})
    assert found["classes"] == union
    record = [json.loads(line) for line in found["record"]]
    rounds = [event["round"] for event in record if event["event"] == "round"]
    stopped = [event["round"] for event in record if event["event"] == "stopped"]
    assert stopped == [rounds[-1]] and rounds[-1] < 7


@pytest.mark.parametrize(
    ("site", "other", "rate"), [("north", "south", 0.3), ("south", "north", 0.001)]
)
def test_a_site_receives_its_own_configuration_alone(found, site, other, rate):
    received = found["received"][site]
    client = json.loads(received["config_fed_client.json"])
    assert client["executors"][0]["executor"]["args"]["training"]["learning_rate"] == rate
    assert "config_fed_server.json" not in received
    assert not [name for name, text in received.items() if other in text]


def test_a_running_system_accepts_it_by_a_startup_kit(found):
    assert found["submitted"] in ("SUBMITTED", "APPROVED", "DISPATCHED", "RUNNING")
