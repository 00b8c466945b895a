"""The recipe in FLARE's POC: real services with certificates, a job that is submitted and run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tiny_job
from cxr_study.deployment.processes import PortError, check_free, end
from simulated import SITES

RECIPES = Path(__file__).parents[1] / "support" / "recipes.py"
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
    table = folder / "sites.json"
    table.write_text(json.dumps({s: SITES[s] for s in ("north", "south")}))
    environment = {
        **os.environ,
        "HOME": str(folder / "home"),
        "NVFLARE_POC_WORKSPACE": str(folder / "workspace"),
    }
    body = tiny_job.initial_body(folder / "body.npz")
    try:
        done = subprocess.run(
            [sys.executable, RECIPES, "poc", folder, table, body, json.dumps(SETTINGS)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=480,
            cwd=folder,
        )
    finally:
        end(folder / "workspace")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


class TestRecipe:
    def test_the_job_runs_to_its_end_and_brings_the_union_home(self, found):
        assert found["status"] == "FINISHED:COMPLETED"
        union = sorted({name for site in ("north", "south") for name in SITES[site]["classes"]})
        assert found["classes"] == union

    def test_a_job_that_stops_early_is_completed_like_any_other(self, found):
        record = [json.loads(line) for line in found["record"]]
        rounds = [event["round"] for event in record if event["event"] == "round"]
        stopped = [event["round"] for event in record if event["event"] == "stopped"]
        assert stopped == [rounds[-1]] and rounds[-1] < 7
        assert found["status"] == "FINISHED:COMPLETED"

    def test_a_site_receives_its_own_configuration_alone(self, found):
        for site, rate in {"north": 0.3, "south": 0.001}.items():
            received = found["received"][site]
            client = json.loads(received["config_fed_client.json"])
            assert client["executors"][0]["executor"]["args"]["training"]["learning_rate"] == rate
            assert "config_fed_server.json" not in received
            other = {"north": "south", "south": "north"}[site]
            assert not [name for name, text in received.items() if other in text]

    def test_a_running_system_takes_it_by_a_startup_kit(self, found):
        assert found["submitted"] in ("SUBMITTED", "APPROVED", "DISPATCHED", "RUNNING")
