"""A server of the base install, and sites that have the rest."""

import os

import pytest

import base_install
import deployed
import tiny_job
from simulated import TWO
from surgical_aggregation.site.contract.site_policy import NO_POLICY


@pytest.fixture
def network(tmp_path):
    """A network whose server finds the base install alone; always stopped."""
    found = [str(base_install.hook(tmp_path / "hook")), os.environ["PYTHONPATH"]]
    with deployed.Network(tmp_path / "network").provision(list(TWO)) as network:
        network.localise(dict.fromkeys(TWO, NO_POLICY), byoc="anyone")
        network.start_server(PYTHONPATH=os.pathsep.join(found))
        network.start_sites()
        yield network


def test_it_runs_a_whole_job_without_curves_and_says_so(network, tmp_path):
    settings = {"num_rounds": 2, "warmup_epochs": 1, "threads": 1, "average_decay": 0.5}
    settings["refit_model"] = "last"
    job = tiny_job.make(tmp_path / "made", TWO, site=tiny_job.KERAS, settings=settings)
    result = deployed.run(network, job)
    assert result.status == "FINISHED:COMPLETED"
    assert result.last.manifest["round"] == 2 and result.best is not None
    assert (result.server / "cross_site_val/cross_val_results.json").is_file()
    assert not list(result.server.rglob("events.out.*"))
    reason = "no curves are written: tensorboard is not installed"
    assert reason in (result.server / "log.txt").read_text()
