"""Jobs that do not end well in FLARE's own simulator; runs/test_simulation.py pretends one."""

import time
from pathlib import Path

import pytest

import tiny_job
from cxr_study.runs.job_results import read_events
from cxr_study.runs.simulator_process import LostSiteError, SimulationError, server_folder, simulate
from simulated import processes
from tiny_job import JOBS

SITES = {name: {"classes": ["Edema"], "images": 16} for name in ("north", "south")}


def test_a_site_without_its_site_file_ends_the_job(tmp_path, initial_body):
    environment = {"CXR_SITES": str(tmp_path), "CXR_INITIAL_BODY": str(initial_body)}
    began = time.monotonic()
    with pytest.raises(SimulationError) as error:
        simulate(JOBS / "surgical", tmp_path / "run", ["nih", "chexpert"], environment=environment)
    assert time.monotonic() - began < 200
    reason, own_log, *_, log = str(error.value).splitlines()
    site = reason.removeprefix("the job failed: ").split(":")[0]  # whichever was the first
    missing = tmp_path / f"{site}.yaml"
    assert f"{site}: site file {missing} does not exist" in reason
    assert str(missing) in Path(own_log.removeprefix(f"The log of {site} is ")).read_text()
    assert Path(log.removeprefix("The log is ")).read_text()
    assert processes(tmp_path) == []


def test_a_class_that_is_not_there_is_named(tmp_path, initial_body):
    job = tiny_job.make(tmp_path, SITES, site="my_hospital.MySite")
    with pytest.raises(SimulationError) as error:
        simulate(
            job, tmp_path / "run", list(SITES),
            environment={"CXR_INITIAL_BODY": str(initial_body)},
        )  # fmt: skip
    reason = str(error.value).splitlines()[0]
    assert "TypeError: Can't load class my_hospital.MySite: No module named" in reason
    assert reason.endswith("Install it there, or correct its name in the job.")
    assert not isinstance(error.value, LostSiteError)  # which is tried again


def test_an_initial_body_that_is_not_there_ends_the_job(tmp_path):
    job = tiny_job.make(tmp_path, SITES)
    began = time.monotonic()
    with pytest.raises(SimulationError, match=r"failed: checkpoint '.*none\.npz' does not exist"):
        simulate(
            job, tmp_path / "run", list(SITES),
            environment={"CXR_INITIAL_BODY": str(tmp_path / "none.npz")},
        )  # fmt: skip
    assert time.monotonic() - began < 200
    assert processes(tmp_path) == []


def test_an_interrupt_ends_every_process(tmp_path, initial_body):
    job = tiny_job.make(tmp_path, SITES)
    workers = []

    def interrupt(events):
        workers[:] = [p for p in processes(tmp_path) if "simulator_worker" in p.cmdline()[2]]
        if len(workers) == len(SITES):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(
            job, tmp_path / "run", list(SITES), watch=interrupt,
            environment={"CXR_INITIAL_BODY": str(initial_body)},
        )  # fmt: skip
    assert processes(tmp_path) == []
    assert read_events(server_folder(tmp_path / "run"))[0]["event"] == "started"
