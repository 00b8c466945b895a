"""The order of a run's steps; whole runs are in tests/simulator."""

import io
import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from cxr_study.common.errors import InputError
from cxr_study.common.offered_data import DemoData
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.runs import run_request, simulated_run
from cxr_study.runs.finished_run import BEFORE, RUN_FILE, checkpoint_folder
from cxr_study.runs.run_request import RunRequest
from cxr_study.runs.simulated_run import run
from cxr_study.runs.simulator_process import SimulationError
from site_files import write_data, write_site
from surgical_aggregation import __version__
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.site.site_memory import STATE_FILE

PREPARE = simulated_run.prepare
SETTINGS = {"num_rounds": 2, "learning_rate": 0.5}


@pytest.fixture
def simulated(monkeypatch):
    """Calls to the simulator, which runs nothing."""
    calls = []

    def simulate(folder, workspace, *, watch, **given):
        calls.append(SimpleNamespace(job=Job.from_folder(folder), workspace=workspace, **given))
        events = [{"event": "round"}, {"event": "best", "value": 0.5}]
        watch(events)
        watch([*events, {"event": "round"}, {"event": "stopped"}])

    monkeypatch.setattr(simulated_run, "simulate", simulate)
    return calls


@pytest.fixture(autouse=True)
def phantom(monkeypatch):
    """How often the phantom was asked for."""
    asked = []
    monkeypatch.setattr(run_request, "check_sites", lambda site_files, sites: None)
    monkeypatch.setattr(simulated_run, "prepare", lambda site_files, sites, size: None)
    demo = DemoData((), lambda: asked.append("phantom"), None)
    monkeypatch.setattr(simulated_run, "demo_data", lambda: demo)
    return asked


@pytest.fixture
def study(tmp_path):
    def make(job="surgical", settings=SETTINGS, per_site=None, sites=None, **changes):
        job = Job.of(job).with_settings(settings, per_site, sites=sites)
        values = {"folder": "run", "site_files": "sites", "initial_body": "body.npz"}
        values = {name: tmp_path / path for name, path in values.items()}
        return RunRequest(job, **{**values, **changes})

    return make


def go(study):
    text = io.StringIO()
    run(study, console=Console(file=text, width=120))
    return text.getvalue().splitlines()


def test_the_job_is_that_with_the_settings_and_has_no_code(study, simulated, phantom, tmp_path):
    lines = go(study())
    (call,) = simulated
    job = call.job.folder.path
    assert (job, call.workspace) == (tmp_path / "run/job", tmp_path / "run/workspace")
    assert call.job.sites == ("nih", "chexpert")
    assert call.job.settings == {**Job.of("surgical").settings, **SETTINGS}
    assert not list(job.glob("*/custom"))
    sites, body = (str(tmp_path / name) for name in ("sites", "body.npz"))
    assert call.environment == {"CXR_SITES": sites, "CXR_INITIAL_BODY": body}
    assert (call.states, phantom) == ({}, [])
    facts = json.loads((tmp_path / "run" / RUN_FILE).read_text())
    assert facts["site_files"] == sites
    assert facts["code"].startswith(__version__) and facts["date"].endswith(" UTC")
    # Without a terminal every round is a line.
    first = "federated run: round 1/2, best validation BCE 0.5000"
    assert lines == [first, f"{first.replace('1/2', '2/2')}, stopped early"]


def test_the_phantom_is_made_before_and_on_record(study, simulated, phantom, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # relative paths hold wherever a site works
    PREPARE(None, ("nih", "chexpert"), 64)
    go(study(site_files=None, initial_body=Path("body.npz")))
    body = str(tmp_path / "body.npz")
    assert phantom == ["phantom"] and simulated[0].environment == {"CXR_INITIAL_BODY": body}
    assert json.loads((tmp_path / "run" / RUN_FILE).read_text())["site_files"] is None


def test_alone_a_site_runs_the_same_job_without_another_or_a_server_optimizer(study, simulated):
    go(study(settings={"server_optimizer": "fedavgm"}, local_models=True))
    federated, *alone = (call.job for call in simulated)
    assert {job.sites for job in alone} == {("nih",), ("chexpert",)}
    for settings in (job.settings for job in alone):
        assert settings["min_clients"] == 1 and settings["threads"] >= 1
        assert settings["server_optimizer"] == "none"
        same = {"min_clients": 0, "threads": 0, "server_optimizer": "fedavgm"}
        assert {**settings, **same} == federated.settings


BEYOND = {
    "strategy": "fedavg", "refit_model": "last", "average_decay": 0.9, "server_momentum": 0.5,
    "head_weighting": "samples", "body_weighting": "samples",
}  # fmt: skip
OFF = {
    "strategy": "fedbn+", "refit_model": "none", "average_decay": 0.0, "head_weighting": "mean",
    "body_weighting": "mean",
}  # fmt: skip


@pytest.mark.parametrize("own_folder", [False, True])
def test_as_published_the_job_lacks_what_goes_beyond(study, simulated, tmp_path, own_folder):
    job, settings, per_site = "surgical", {**SETTINGS, **BEYOND}, {"nih": {"epochs": 2}}
    if own_folder:  # whose own settings are no reason to keep them
        job, settings = tmp_path / "surgical", SETTINGS
        job_export.write(Job.of("surgical").with_settings(BEYOND), job)
    go(study(job=job, settings=settings, per_site=per_site, published=True))
    ours, published = simulated
    assert published.workspace == tmp_path / "run/published/workspace"
    assert published.job.sites == ours.job.sites
    assert ours.job.settings.items() >= {**SETTINGS, **BEYOND}.items()
    assert published.job.settings == {**ours.job.settings, **OFF}
    assert published.job.per_site == per_site


def test_as_published_a_site_has_nothing_of_its_own_that_goes_beyond(study, simulated):
    own = {"nih": {"pseudo_labels": "soft", "epochs": 2}}
    go(study(job="partial_loss", per_site=own, published=True))
    found = [(call.job.at("nih").pseudo_labels, call.job.at("nih").epochs) for call in simulated]
    assert found == [("soft", 2), ("none", 2)]


def test_sites_that_share_patients_are_named_before_anything_is_made(simulated, tmp_path, capsys):
    data = (tmp_path / "sites", ("nih", "chexpert"), 64)
    data[0].mkdir()
    write_data(tmp_path / "sites")
    for site in ("nih", "chexpert"):
        write_site(tmp_path / "sites", site)
    with pytest.raises(InputError, match="a patient belongs to one site; 3 are at both"):
        PREPARE(*data)
    assert simulated == [] and not (tmp_path / "run").exists()
    labels = (tmp_path / "sites/labels.csv").read_text()
    (tmp_path / "sites/other.csv").write_text(labels.replace("Left effusion", "Left effusions"))
    write_site(tmp_path / "sites", "chexpert", labels="other.csv")  # of another hospital
    PREPARE(*data)
    output = capsys.readouterr().out
    assert "note: 3 patient ids are at both nih and chexpert" in output
    pair = "'Left effusion' (nih) and 'Left effusions' (chexpert)"
    assert f"note: {pair} may be one finding: the same words" in output
    assert "note: nih: Left effusion: no positive training image, so it would predict no" in output


def test_a_site_alone_that_fails_stops_the_others(study, monkeypatch):
    begun, finished = threading.Barrier(2, timeout=60), []

    def simulate(job, workspace, *, watch, **_):
        sites = Job.from_folder(job).sites
        if len(sites) == 2:
            return
        begun.wait()
        if sites == ("nih",):
            raise SimulationError("no disk")
        for _ in range(600):
            watch([])
            time.sleep(0.1)
        finished.append(sites)

    monkeypatch.setattr(simulated_run, "simulate", simulate)
    with pytest.raises(SimulationError, match="no disk"):
        go(study(local_models=True))
    assert finished == []


def test_jobs_run_at_once_on_the_phantom_else_the_federation_first(study, monkeypatch, tmp_path):
    ended = []

    def simulate(job, workspace, **_):
        sites = Job.from_folder(job).sites
        assert len(sites) == 2 or ("nih", "chexpert") in ended
        ended.append(sites)

    monkeypatch.setattr(simulated_run, "simulate", simulate)
    go(study(local_models=True))
    assert len(ended) == 3
    begun = threading.Barrier(3, timeout=60)  # breaks where one waits for another's end
    monkeypatch.setattr(simulated_run, "simulate", lambda *_, **__: begun.wait())
    go(study(site_files=None, folder=tmp_path / "second", local_models=True))


def test_continued_it_has_the_earlier_model_and_sites_restore_theirs(study, simulated, tmp_path):
    earlier, shared = tmp_path / "earlier", ("nih", "chexpert")
    for workspace in (earlier / "workspace", earlier / "local/nih"):
        for site in shared:  # nih alone ran, too
            state = checkpoint_folder(workspace, site) / STATE_FILE
            state.parent.mkdir(parents=True)
            state.touch()
    for which in ("last", "best"):
        model = checkpoint_folder(earlier / "workspace") / f"{which}.npz"
        save(Checkpoint({}, {"round": 0, "job": which}), model)
    sites = ("nih", "mimic")
    go(study(earlier=earlier, initial_body=None, sites=sites, local_models=True))
    calls = {call.job.sites: call for call in simulated}
    for took_part, workspace in ((sites, earlier / "workspace"), (("nih",), earlier / "local/nih")):
        start = calls[took_part].environment["CXR_INITIAL_BODY"]
        assert start == str(checkpoint_folder(workspace) / "last.npz")
        assert calls[took_part].states == {"nih": checkpoint_folder(workspace, "nih")}
    go(study(earlier=earlier, model="best", folder=tmp_path / "afresh"))
    assert simulated[-1].environment["CXR_INITIAL_BODY"].endswith("best.npz")
    assert simulated[-1].states == {}
    starts = [load(tmp_path / of / BEFORE).manifest["job"] for of in ("run", "afresh")]
    assert starts == ["last", "best"]  # which the report compares with


def test_continued_a_site_alone_ends_with_the_round_of_the_federation(study, simulated, tmp_path):
    earlier = tmp_path / "earlier"  # interrupted; its runs went side by side
    made = {"workspace": 3, "local/nih": 5, "local/chexpert": 7}
    for workspace, round_ in made.items():
        path = checkpoint_folder(earlier / workspace) / "last.npz"
        save(Checkpoint({}, {"round": round_, "job": "simulate_job"}), path)
    more = {"num_rounds": 3}
    again = study(earlier=earlier, initial_body=None, settings=more, local_models=True)
    output = go(again)
    rounds = [line for line in output if line.startswith("federated run: ")]  # of the whole
    assert [line.split()[3].rstrip(",") for line in rounds] == ["4/6", "5/6"]
    rounds_made(tmp_path / "run", 2)
    assert "interrupted after 5 of 6 rounds." in simulated_run.resume_instructions(again)
    planned = {call.job.sites: call.job.settings["num_rounds"] for call in simulated}
    # 0 would mean all rounds that the site lacks
    assert planned == {("nih", "chexpert"): 3, ("nih",): 1, ("chexpert",): 1}


def rounds_made(folder, number):
    (folder / "job").mkdir(parents=True, exist_ok=True)
    (folder / "job/meta.json").touch()
    record = folder / "workspace/server/simulate_job/run_record.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text('{"event": "round", "round": 0}\n' * number)


def test_an_interrupted_run_states_its_rounds_and_how_to_resume(study, tmp_path):
    rounds_made(tmp_path / "run", 1)
    output = simulated_run.resume_instructions(study())
    assert output.startswith("interrupted after 1 of 2 rounds. Resume: surgagg continue ")
    assert f"continue {tmp_path}/run --out {tmp_path}/run-continued" in output
    stopped = tmp_path / "run/workspace/server/simulate_job/run_record.jsonl"
    stopped.write_text(stopped.read_text() + '{"event": "stopped", "round": 0}\n')
    assert "after the last round" in simulated_run.resume_instructions(study())
    rounds_made(tmp_path / "whole", 2)
    output = simulated_run.resume_instructions(study(folder=tmp_path / "whole"))
    assert output.endswith(f"surgagg report {tmp_path}/whole") and "continue" not in output


def test_a_run_without_a_round_is_moved_out_of_the_way_of_the_next(study, tmp_path):
    for attempt in ("first", "second"):
        rounds_made(tmp_path / "run", 0)
        (tmp_path / f"run/{attempt}.log").touch()
        error = SimulationError(f"no disk. The log is {tmp_path}/run/a.log")
        moved = simulated_run.move_failed_run_aside(study(), error)
        assert str(moved) == f"no disk. The log is {tmp_path}/run-failed/a.log"
        assert isinstance(moved, SimulationError)
        assert not (tmp_path / "run").exists()
        assert [path.name for path in (tmp_path / "run-failed").glob("*.log")] == [f"{attempt}.log"]
    rounds_made(tmp_path / "run-failed", 1)  # a run of that name, and a folder of something else
    (tmp_path / "run-failed-2").mkdir()
    rounds_made(tmp_path / "run", 0)
    assert f"logs are in {tmp_path}/run-failed-3. " in simulated_run.resume_instructions(study())
    assert (tmp_path / "run-failed/second.log").is_file() and (tmp_path / "run-failed-2").is_dir()
    rounds_made(tmp_path / "run", 1)
    assert simulated_run.move_failed_run_aside(study(), error) is error
    assert (tmp_path / "run").exists()
