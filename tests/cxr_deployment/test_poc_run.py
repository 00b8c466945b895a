from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from rich.console import Console

import tiny_job
from cxr_deployment import poc_run
from cxr_deployment.deployed_run import DeployedRun
from cxr_deployment.poc_run import check, run
from cxr_deployment.poc_system import PocSystem
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import finished_run
from cxr_study.runs.run_request import RunRequest
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

SITES = ("nih", "chexpert")
PROJECT = Path(__file__).parents[2] / "poc/project.yml"


@pytest.fixture
def did(monkeypatch):
    """What was done to the POC; nothing is started."""
    did = []

    def step(name, make=lambda system: None):
        def do(system, *_, **__):
            did.append(name)
            return make(system)

        return do

    def prepared(system):
        system.folder.mkdir(parents=True)

    def cleaned(system):
        assert system.folder.exists()
        system.folder.rename(system.folder.with_name("cleaned"))

    def trained(deployed):
        deployed.jobs = ["1"]
        deployed.write_facts()

    of_system = {
        "prepare": step("prepare", prepared), "start": step("start"), "stop": step("stop"),
        "clean": step("clean", cleaned), "workspaces": {},
        "project": SimpleNamespace(port=1, sites=SITES),
        "lead": property(lambda system: system.folder / "lead"),
        "kit": lambda system, name: system.folder / name,
    }  # fmt: skip
    for name, value in of_system.items():
        monkeypatch.setattr(PocSystem, name, value)
    monkeypatch.setattr(poc_run, "FlareSession", nullcontext)
    monkeypatch.setattr(DeployedRun, "run", step("train", trained))
    decode = lambda files, *_: did.append("decode" if files else "phantom")  # noqa: E731
    monkeypatch.setattr(poc_run.simulated_run, "prepare", decode)
    return did


@pytest.fixture
def go(did, tmp_path):
    def go(job=None, keep=False, site_files=None, **settings):
        tiny = {site: {} for site in SITES}
        job = job or tiny_job.make(tmp_path / "tiny", tiny, code="marked")
        asked = Job.of(job).with_settings(settings, sites=SITES)
        request = RunRequest(asked, tmp_path / "out", site_files)
        run(request, tmp_path, Console(file=StringIO()), keep=keep)
        return tmp_path / "out"

    return go


@pytest.mark.parametrize(("options", "first", "last"), [
    ({}, ["phantom"], ["clean"]),
    ({"site_files": Path("files"), "initial_body": "/b.npz"}, ["decode"], ["clean"]),
    ({"keep": True}, ["phantom"], []),
])  # fmt: skip
def test_it_goes_from_preparing_to_removing_and_leaves_a_run(go, did, options, first, last):
    finished = finished_run(go(**options))
    assert did == [*first, "prepare", "start", "train", *last]
    assert [path.parent.name for path in finished.servers] == ["1"]
    assert not finished.facts.elsewhere


@pytest.mark.parametrize(("job", "marked"), [(None, 2), (tiny_job.JOBS / "surgical", 0)])
@pytest.mark.parametrize(("asked", "threads"), [({}, 3), ({"threads": 1}, 1)])
def test_cores_are_shared_and_own_code_marked(go, monkeypatch, job, marked, asked, threads):
    monkeypatch.setattr("surgical_aggregation.site.training.tensorflow_setup.cores", lambda: 7)
    made = go(job, **asked) / "job"
    assert len(list(made.glob("*/custom"))) == marked
    assert Job.from_folder(made).settings["threads"] == threads


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("step", [(PocSystem, "start"), (DeployedRun, "run")])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_whatever_fails_it_stops_and_logs_stay(go, did, monkeypatch, step, error, keep, tmp_path):
    monkeypatch.setattr(*step, Mock(side_effect=error))
    with pytest.raises(error):
        go(keep=keep)
    assert did[-1] == "stop"
    assert (tmp_path / "out/poc").is_dir()


@pytest.mark.parametrize(("job", "settings", "environment", "message"), [
    ("surgical", {}, "rel.npz", r"absolute path; got 'rel\.npz'\. G"),
    ("surgical", {"initial_body": "rel.npz"}, "", r"absolute path; got 'rel\.npz'\. G"),
    ("surgical", {"backbone": "densenet121"}, "", "body of the phantom is of small_densenet"),
    ("surgical", {"initial_body": "{body}"}, "", "npz is of densenet121"),
    ("surgical", {}, "{body}", "npz is of densenet121"),
    ("surgical", {"continues": "a", "num_rounds": 0}, "", r"no jobs; got continues=a\. Submit"),
    ("evaluation", {"model_of": "a"}, "", r"no jobs; got model_of=a\. Submit"),
    ("evaluation", {"backbone": "densenet121"}, "", None),  # starts from no initial body
])  # fmt: skip
def test_what_cannot_run_is_refused(tmp_path, monkeypatch, job, settings, environment, message):
    body = tmp_path / "body.npz"
    save(Checkpoint({"dense/kernel": np.ones(2)}, {"backbone": "densenet121"}), body)
    monkeypatch.setenv("CXR_INITIAL_BODY", environment.format(body=body))
    if "initial_body" in settings:
        settings = {"initial_body": settings["initial_body"].format(body=body)}
    asked = Job.of(job).with_settings(settings, sites=SITES)
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        check(RunRequest(asked, tmp_path / "out"), PROJECT)
