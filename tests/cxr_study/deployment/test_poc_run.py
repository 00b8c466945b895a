from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import tiny_job
from cxr_study.deployment import deployed_run, poc_run
from cxr_study.deployment.poc_run import PocRun, check, run
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.jobs import job_folder
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.jobs.job_folder import InitialBodyError
from cxr_study.runs.finished_run import finished_run
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

SITES = ("north", "south")
PROJECT = Path(__file__).parents[3] / "poc/project.yml"


class Session:
    def __init__(self, kit):
        self.kit = kit

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def did(monkeypatch):
    """What was done to the POC; nothing is started. An entry of `did.fails` fails instead."""

    class Did(list):
        fails = ()

    did = Did()

    def step(name, make=lambda system: None):
        def do(system, *_, **__):
            did.append(name)
            if name in did.fails:
                raise did.fails[name]
            return make(system)

        return do

    def prepared(system):
        for site in SITES:
            (system.folder / site / "checkpoints/1").mkdir(parents=True)

    def cleaned(system):
        assert system.folder.exists()
        system.folder.rename(system.folder.with_name("cleaned"))

    def trained(deployed):
        return (deployed.folder / "1/workspace",)

    monkeypatch.setattr(PocSystem, "prepare", step("prepare", prepared))
    monkeypatch.setattr(PocSystem, "start", step("start"))
    monkeypatch.setattr(PocSystem, "stop", step("stop"))
    monkeypatch.setattr(PocSystem, "clean", step("clean", cleaned))
    monkeypatch.setattr(PocSystem, "project", type("Project", (), {"port": 1}))
    monkeypatch.setattr(PocSystem, "workspaces", {})
    monkeypatch.setattr(PocSystem, "lead", property(lambda system: system.folder / "lead"))
    monkeypatch.setattr(PocSystem, "kit", lambda system, name: system.folder / name)
    monkeypatch.setattr(poc_run, "FlareSession", Session)
    monkeypatch.setattr(deployed_run, "run", step("train", trained))
    monkeypatch.setattr(poc_run, "demo_study", lambda: did.append("phantom"))
    monkeypatch.setattr(poc_run.simulated_run, "prepare", lambda *_: did.append("decode"))
    return did


@pytest.fixture
def go(did, tmp_path):
    def go(keep=False, site_files=None, fails=None, **settings):
        did.fails = fails or {}
        job = tiny_job.make(tmp_path / "tiny", {site: {} for site in SITES})
        poc = PocRun(job, tmp_path / "out", SITES, tmp_path, site_files, settings, keep=keep)
        run(poc, Console(file=StringIO()), lambda: did.append("report"))
        return tmp_path / "out"

    return go


def test_it_goes_from_preparing_to_removing_and_leaves_what_a_report_needs(go, did):
    finished = finished_run(go())
    assert did == ["phantom", "prepare", "start", "train", "report", "stop", "clean"]
    assert [path.parent.name for path in finished.servers] == ["1"]
    assert all(state.is_dir() for state in finished.states.values())


def test_a_hospitals_own_data_is_decoded_once_before(go, did, tmp_path):
    go(site_files=tmp_path, initial_body="/mine.npz")
    assert did[:2] == ["decode", "prepare"]


@pytest.mark.parametrize(("job", "marked"), [("tiny", 2), ("surgical", 0)])
def test_only_a_job_with_classes_that_the_kits_do_not_allow_stays_marked(
    go, monkeypatch, job, marked
):
    if job == "surgical":
        monkeypatch.setattr(tiny_job, "make", lambda *_: tiny_job.JOBS / job)
    assert len(list((go() / "job").glob("*/custom"))) == marked


@pytest.mark.parametrize(("asked", "threads"), [({}, 3), ({"threads": 1}, 1)])
def test_sites_share_the_cores_unless_they_are_told_otherwise(go, monkeypatch, asked, threads):
    monkeypatch.setattr("surgical_aggregation.site.training.tensorflow_setup.cores", lambda: 7)
    assert job_folder.read_settings(go(**asked) / "job")["threads"] == threads


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("step", ["start", "train"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_whatever_fails_it_is_stopped_and_its_logs_stay(go, did, step, error, keep, tmp_path):
    with pytest.raises(error):
        go(keep=keep, fails={step: error()})
    assert did[-1] == "stop"
    assert (tmp_path / "out/poc").is_dir()


def test_it_is_kept_running_where_that_is_wanted(go, did):
    go(keep=True)
    assert did[-1] == "report"


class TestCheck:
    @pytest.fixture
    def checked(self, tmp_path):
        def checked(job="surgical", **settings):
            check(PocRun(tiny_job.JOBS / job, tmp_path / "out", SITES, PROJECT, None, settings))

        return checked

    def test_a_job_that_starts_from_no_initial_body_needs_none(self, checked):
        checked("evaluation", backbone="densenet121")

    def test_an_initial_body_that_the_server_would_look_for_elsewhere_is_refused(
        self, checked, monkeypatch
    ):
        monkeypatch.setenv("CXR_INITIAL_BODY", "rel.npz")
        for settings in ({}, {"initial_body": "rel.npz"}):
            with pytest.raises(JobError, match=r"absolute path; got 'rel\.npz'\. Give it by"):
                checked(**settings)

    def test_one_of_another_network_is_refused_wherever_it_is_named(
        self, checked, tmp_path, monkeypatch
    ):
        body = tmp_path / "body.npz"
        save(Checkpoint({"dense/kernel": np.ones(2)}, {"backbone": "densenet121"}), body)
        with pytest.raises(InitialBodyError, match="body of the phantom is of small_densenet"):
            checked(backbone="densenet121")
        with pytest.raises(InitialBodyError, match="npz is of densenet121"):
            checked(initial_body=str(body))
        monkeypatch.setenv("CXR_INITIAL_BODY", str(body))
        with pytest.raises(InitialBodyError, match="npz is of densenet121"):
            checked()

    @pytest.mark.parametrize(
        ("job", "settings"),
        [("surgical", {"continues": "a", "num_rounds": 0}), ("evaluation", {"model_of": "a"})],
    )
    def test_what_continues_another_job_is_nothing_for_a_new_poc(self, checked, job, settings):
        with pytest.raises(JobError, match=r"has had no jobs; got (continues|model_of)=a\. Submit"):
            checked(job, **settings)
