"""Jobs that fail in FLARE's simulator."""

import time
from dataclasses import replace

import pytest

import tiny_job
from cxr_study.jobs.job import Job
from cxr_study.runs.job_results import read_events
from cxr_study.runs.simulator_process import LostSiteError, SimulationError, server_folder, simulate
from simulated import processes

SITES = {name: {"classes": ["Edema"], "images": 16} for name in ("north", "south")}


@pytest.fixture
def run(tmp_path, initial_body):
    """Run a job, the tiny one if no other; afterwards no process may be left."""

    def run(job=None, **options):
        job = job or tiny_job.make(tmp_path, SITES)
        environment = {"CXR_INITIAL_BODY": str(initial_body)}
        simulate(job, tmp_path / "run", environment=environment, **options)

    began = time.monotonic()
    yield run
    assert time.monotonic() - began < 600
    assert processes(tmp_path) == []


def test_a_site_class_that_does_not_exist_is_named(run, tmp_path):
    with pytest.raises(SimulationError) as error:
        run(tiny_job.make(tmp_path, SITES, site="my_hospital.MySite"))
    assert "TypeError: Can't load class my_hospital.MySite: No module named" in str(error.value)
    assert "Correct the job's configuration, or install or allow" in str(error.value)
    assert not isinstance(error.value, LostSiteError)  # which is tried again


def test_where_the_disk_takes_no_result_the_job_ends_with_the_reason(run, tmp_path):
    with pytest.raises(SimulationError) as error:
        run(tiny_job.make(tmp_path, SITES, plan=["server:1:no_room"], settings={"num_rounds": 3}))
    reason = str(error.value).splitlines()[0]
    assert "a result could not be written to" in reason and "No space left on device" in reason
    events = read_events(server_folder(tmp_path / "run"))
    assert [event["round"] for event in events if event["event"] == "round"] == [0]
    failed = next(event for event in events if event["event"] == "failed")
    assert "free some space, and resume the run" in failed["reason"]


def test_a_job_of_three_stops_where_flare_has_started_it_at_two(run, tmp_path, monkeypatch):
    """They would be enough for an average; that must be asked for."""
    read = Job.from_folder
    two = classmethod(lambda cls, path: replace(read(path), sites=tuple(SITES)))
    monkeypatch.setattr(Job, "from_folder", two)  # FLARE starts these alone
    job = tiny_job.make(tmp_path, {**SITES, "west": {"classes": ["Hernia"], "images": 16}})
    with pytest.raises(SimulationError, match="west"):
        run(job)
    events = {e["event"]: e for e in read_events(server_folder(tmp_path / "run"))}
    sites, failed = events["sites"], events["failed"]
    assert (sites["job"], sites["deployed"]) == (["north", "south", "west"], ["north", "south"])
    needed = "task 'check' needs accepted results of 3 of the 3 sites; got 2"
    assert failed["reason"].startswith(needed)
    assert "west: FLARE has not started the job there" in failed["reason"]


def test_an_interrupt_ends_every_process(run, tmp_path):
    def interrupt(events):
        commands = [" ".join(process.info["cmdline"]) for process in processes(tmp_path)]
        workers = [command for command in commands if "simulator_worker" in command]
        if len(workers) == len(SITES):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(watch=interrupt)
    assert read_events(server_folder(tmp_path / "run"))[0]["event"] == "started"
