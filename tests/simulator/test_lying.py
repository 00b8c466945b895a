"""Sites that lie about who they are, or answer what would end the job, in FLARE's simulator."""

import json
from types import SimpleNamespace

import pytest

import lying
import tiny_job
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.results import read_events
from cxr_study.runs.simulation import simulate
from secrecy import names
from surgical_aggregation.checkpoints.checkpoint import load

HONEST = {
    "north": {"classes": ["Edema", "Nodule/Mass"], "images": 24},
    "south": {"classes": ["Edema", "Fracture"], "images": 16},
}
LIARS = {
    "east": {"classes": ["Edema"], "images": 8},  # answers oddly
    "west": {"classes": ["Edema", "Nodule/Mass"], "images": 8},  # passes for north
}
PERMITTED = {site: entry["classes"] for site, entry in HONEST.items()} | {
    "east": ["Edema"], "west": ["Pneumothorax"],
}  # fmt: skip
KNOBS = {
    "num_rounds": 3, "min_clients": 2, "wait_seconds": 1, "warmup_epochs": 1,
    "learning_rate": 0.05, "tracking": "none",
}  # fmt: skip


def run(folder, sites, body, **lies):
    job = tiny_job.make(folder, sites, settings=KNOBS)
    lying.lie(job, permitted=PERMITTED, **lies)
    (folder / "received").mkdir()
    environment = {"CXR_INITIAL_BODY": str(body), "CAPTURE_FOLDER": str(folder / "received")}
    simulate(job, folder / "workspace", list(sites), environment=environment)
    server = server_folder(folder / "workspace")
    return SimpleNamespace(
        folder=folder,
        workspace=folder / "workspace",
        server=server,
        record=read_events(server),
        models={name: load(server / "models" / f"{name}.npz") for name in ("last", "best")},
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory, initial_body):
    """The honest sites alone, and with the liars."""
    folder = tmp_path_factory.mktemp("lying")
    claims = {"west": ["north", HONEST["north"]["classes"]]}
    lies = {"claims": claims, "odd": "east", "slow": "south"}
    lied = run(folder / "lied", HONEST | LIARS, initial_body, **lies)
    return SimpleNamespace(alone=run(folder / "alone", HONEST, initial_body), lied=lied)


def refused(run, site):
    """(task, round) -> reason."""
    return {
        (event["task"], event["round"]): event["reason"]
        for event in run.record
        if event["event"] == "refused" and event["site"] == site
    }


@pytest.mark.parametrize("name", ["last", "best"])
def test_the_model_is_that_of_the_honest_sites_bit_for_bit(runs, name):
    ours, alone = runs.lied.models[name], runs.alone.models[name]
    assert ours.variables.keys() == alone.variables.keys()
    for variable, value in alone.variables.items():
        assert ours.variables[variable].tobytes() == value.tobytes(), variable
    assert ours.manifest["classes"] == alone.manifest["classes"]
    assert ours.manifest["best"]["sites"] == alone.manifest["best"]["sites"]


def test_who_passes_for_another_is_refused_in_every_task_under_its_own_name(runs):
    tasks = [("train", 0), ("train", 1), ("train", 2), ("validate", None), ("test", None)]
    assert refused(runs.lied, "west") == dict.fromkeys(tasks, "it calls itself 'north'")


@pytest.mark.parametrize("site", HONEST)
def test_the_victim_never_notices(runs, site):
    assert refused(runs.lied, site) == {}
    log = (runs.lied.workspace / site / "log.txt").read_text(encoding="utf-8")
    assert "ERROR" not in log


def test_the_victims_columns_are_not_sent_to_who_passes_for_it(runs):
    received = {
        site: (runs.lied.folder / "received" / site).read_bytes() for site in HONEST | LIARS
    }
    for name in HONEST["north"]["classes"]:
        kernel = runs.lied.models["last"].variables[f"head/{name}/kernel"].tobytes()
        assert kernel in received["north"]  # with the final model; the search can find it
        assert kernel not in received["west"]
        assert not names(received["west"], name)


def test_no_return_code_of_one_site_ends_the_job(runs):
    assert refused(runs.lied, "east") == {
        ("train", 0): "its policy holds the job for unsafe (UNSAFE_JOB)",
        ("train", 1): "its configuration has no executor for the task (TASK_UNKNOWN)",
        ("train", 2): "it did not carry out the task (RUN_MISMATCH)",
        ("validate", None): "'bce' must be a number from 0 to inf; got 'low'",
        ("test", None): "there is no metric ('bce', 'Edema') that the site could report",
    }


def test_a_round_waits_for_the_results_that_it_needs_however_late(runs):
    """Two are needed: with what east and west answer there are three, long before south's."""
    first = next(event for event in runs.lied.record if event["event"] == "round")
    assert first["round"] == 0 and first["seconds"] > lying.SLOW > KNOBS["wait_seconds"]
    assert refused(runs.lied, "south") == {}


def test_the_results_of_the_honest_sites_are_whole(runs):
    files = [
        run.server / "cross_site_val/cross_val_results.json" for run in (runs.lied, runs.alone)
    ]
    ours, alone = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    assert ours == alone and set(ours) == set(HONEST)


def test_the_summary_says_who_was_not_measured_and_why(runs):
    log = (runs.lied.workspace / "server/log.txt").read_text(encoding="utf-8")
    summary = log[log.index("the run has ended") :]
    assert "test split of west: not measured: it calls itself 'north'" in summary
    assert "test split of east: not measured: there is no metric ('bce', 'Edema')" in summary
    assert summary.count("mean AUROC") == len(HONEST)
