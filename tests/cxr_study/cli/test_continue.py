"""`surgagg continue`, as typed; whole runs are in tests/simulator."""

import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest

from cxr_study.common.offered_data import DemoData
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.runs import run_request
from cxr_study.runs.finished_run import RUN_FILE, RunFacts, checkpoint_folder, read_facts
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.site.site_memory import STATE_FILE
from typed import answer

surgagg = partial(answer, "continue")


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """A run of 12 rounds on real site files that was interrupted after 5."""
    monkeypatch.setattr(run_request, "check_sites", lambda site_files, sites: None)
    folder = tmp_path / "earlier"
    job = Job.of("surgical").with_settings({"batch_size": 8}, sites=["a", "b"])
    job_export.write(job, folder / "job")
    (folder / RUN_FILE).write_text(json.dumps({"site_files": "/my/sites"}))
    put_model(folder, round_=5)
    put_model(folder, round_=5, name="best.npz")
    for site in ("a", "b"):
        state = checkpoint_folder(folder / "workspace", site) / STATE_FILE
        state.parent.mkdir(parents=True)
        state.touch()
    return folder


def put_model(folder, round_, workspace="workspace", name="last.npz", **facts):
    path = checkpoint_folder(folder / workspace) / name
    facts = {"job": "simulate_job", "round": round_, "planned_rounds": 12, **facts}
    save(Checkpoint({}, facts), path)


def test_job_sites_and_site_files_are_the_earlier_runs(started, earlier, tmp_path):
    earlier = Path(shutil.move(earlier, tmp_path / "moved"))
    surgagg(earlier, "--out", tmp_path / "more")
    ((study, force),) = started
    assert (study.job.folder.path, study.folder) == (earlier / "job", tmp_path / "more")
    assert study.job.sites == ("a", "b") and study.site_files == Path("/my/sites")
    assert (study.earlier, study.model, study.initial_body) == (earlier, "last", None)
    assert (study.local_models, force) == (False, False)
    assert study.start(study.workspace).is_file() and study.job.settings["batch_size"] == 8


def test_everything_can_be_otherwise(started, earlier, tmp_path):
    for site in ("a", "c"):
        put_model(earlier, 5, workspace=f"local/{site}", name="best.npz")
    how = ("--sites", "a, c", "--site-files", tmp_path, "--from", "best", "--local-models")
    given = ("--set", "num_rounds=3", "--set", "c:epochs=2")
    surgagg(earlier, "--out", tmp_path / "more", *how, *given, "--force")
    ((study, force),) = started
    assert (study.job.sites, study.site_files, study.model) == (("a", "c"), tmp_path, "best")
    assert study.job.settings["num_rounds"] == 3 and study.job.per_site == {"c": {"epochs": 2}}
    assert study.local_models and force


def test_it_starts_from_the_earlier_model_also_where_the_job_named_another_start(started, earlier):
    named = {"initial_body": "drawings", "continues": "0043d777"}
    shutil.rmtree(earlier / "job")
    job_export.write(Job.of("surgical").with_settings(named, sites=["a", "b"]), earlier / "job")
    surgagg(earlier)
    job, default = started[0][0].job, Job.of("surgical").settings
    assert {name: job.settings[name] for name in named} == {name: default[name] for name in named}
    for name, value in named.items():
        assert f"replaces setting '{name}'" in surgagg(earlier, "--set", f"{name}={value}", code=2)
    assert len(started) == 1


@pytest.mark.parametrize(("last", "options", "rounds"), [
    ({"round_": 5}, [], 7),  # interrupted
    ({"round_": 25, "planned_rounds": 32, "history": [{"job": "x", "rounds": [0, 20]}]}, [], 7),
    ({"round_": 12}, [], None),  # ended: as many again
    ({"round_": 5, "planned_rounds": 5}, [], None),  # stopped early
    ({"round_": 5}, ["--from", "best"], None),
])  # fmt: skip
def test_an_interrupted_run_gets_the_rounds_that_it_lacks(started, earlier, last, options, rounds):
    put_model(earlier, **last)
    text = surgagg(earlier, *options)
    assert started[0][0].job.settings["num_rounds"] == (rounds or 12)
    assert text.startswith(f"{rounds or 12} rounds from ")


def test_says_which_sites_start_without_their_state(started, earlier, monkeypatch):
    (earlier / RUN_FILE).write_text('{"site_files": null}')
    demo = DemoData(("a", "b", "c"), lambda: None, None)
    monkeypatch.setattr(run_request, "demo_data", lambda: demo)
    options = (), ("--sites", "a,c"), ("--from", "best")
    lines = [surgagg(earlier, *how).splitlines()[1:] for how in options]
    line = "{} has no state of the earlier run to restore: its optimizer starts afresh"
    assert lines == [[line.format(site) for site in sites] for sites in ("", "c", "ab")]
    assert [study.site_files for study, *_ in started] == [None] * 3  # the phantom again


@pytest.mark.parametrize("content", [
    b"", b"null", b"[]", b'{"site_files": nu', b"\xff", b'{"site_files": 3}', b'{"jobs": null}',
])  # fmt: skip
def test_damaged_facts_of_a_run_are_named_with_the_remedy(started, earlier, content):
    (earlier / RUN_FILE).write_bytes(content)
    (line,) = surgagg(earlier, code=2).splitlines()
    assert f"{earlier / RUN_FILE} is damaged. Replace" in line
    (remedy,) = re.findall(r'by ({"site_files": null})', line)
    (earlier / RUN_FILE).write_text(remedy)
    assert read_facts(earlier) == RunFacts(None)


@pytest.mark.parametrize(("run", "out", "message"), [
    ("other", "more", "last.npz, which does not exist"),
    (".", "more", "an earlier `surgagg run` is needed"),
    ("earlier", "earlier", "needs a separate folder"), ("earlier", ".", "needs a separate folder"),
])  # fmt: skip
def test_a_mistake_is_reported_first_of_all(started, earlier, tmp_path, run, out, message):
    other = shutil.copytree(earlier, tmp_path / "other")
    (checkpoint_folder(other / "workspace") / "last.npz").unlink()
    assert message in surgagg(tmp_path / run, "--out", tmp_path / out, "--force", code=2)
    assert started == [] and (earlier / "job").is_dir()
