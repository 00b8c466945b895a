"""Faults of a site, of the server and of people, in real processes: what is lost, and how it ends.

Two runs on one system, each struck by several faults; every job that a fault ended is continued.
"""

import json
from types import SimpleNamespace

import pytest

import deployed
from faulty_run import ROUNDS, SITES, UNION, FaultyRun, kill, tell, together
from surgical_aggregation.checkpoint import load
from undisturbed import same

pytestmark = [pytest.mark.poc, pytest.mark.keras]

SITE = {
    "south:1:error": ("executor error at a site", "FINISHED:EXECUTION_EXCEPTION"),
    "south:1:kill": ("a site's job process killed", "FINISHED:EXECUTION_EXCEPTION"),
    "north:3:image": ("unreadable image in the middle of training", "FINISHED:EXECUTION_EXCEPTION"),
}
SERVER = {
    "south:1:hold": ("job aborted by the admin", "FINISHED:ABORTED"),
    "north:2:hold": ("server's job process killed", "FINISHED:EXECUTION_EXCEPTION"),
    "server:3:full": ("server's disk full", "FINISHED:EXECUTION_EXCEPTION"),
    "south:test:hold": ("server's job process killed in the test", "FINISHED:EXECUTION_EXCEPTION"),
}
FAULTS = [("site", item) for item in SITE] + [("server", item) for item in SERVER]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, undisturbed):
    """The two runs: one whose runner has the places at hand, and one as on a network."""
    folder = tmp_path_factory.mktemp("faults")
    with deployed.poc_system(folder, SITES) as system:
        when = {
            "south:1:hold": lambda session, job_id: session.abort(job_id),
            "north:2:hold": kill(system.server),
            "south:test:hold": kill(system.server),
        }
        site, server = together(
            FaultyRun(system, folder / "site", plan=list(SITE), at_hand=True),
            FaultyRun(system, folder / "server", plan=list(SERVER), when=when),
        )
        logs = {
            site_: "".join(log.read_text() for log in system.kit(site_).glob("*/log.txt"))
            for site_ in SITES
        }
        return SimpleNamespace(site=site, server=server, logs=logs)


def part_of(run, item):
    """The job that a fault ended: each ends one, in the order of the plan."""
    return run.parts[list(run.plan).index(item)]


@pytest.mark.parametrize(("run", "item"), FAULTS)
def test_the_model_on_the_disk_is_the_undisturbed_runs_after_the_last_whole_round(
    runs, undisturbed, run, item
):
    run = getattr(runs, run)
    part = part_of(run, item)
    fault, status = {**SITE, **SERVER}[item]
    assert part.status == status
    assert part.model.manifest["round"] == part.made
    assert sorted(part.model.manifest["classes"]) == UNION
    assert same(part.model, undisturbed.result().after(part.made))
    if item != "south:test:hold":
        seconds, again = run.recovery(item)
        tell(fault, ended=status, repeated=again, seconds=seconds, distance=0.0)


@pytest.mark.parametrize("run", ["site", "server"])
def test_the_run_ends_with_the_undisturbed_runs_models_bit_for_bit(runs, undisturbed, run):
    run = getattr(runs, run)
    for name in ("last", "best"):
        ours, theirs = run.checkpoint(name), undisturbed.result().checkpoint(name)
        assert same(ours, theirs), name
        assert ours.manifest["best"] == theirs.manifest["best"]
        assert ours.manifest["classes"] == theirs.manifest["classes"]


@pytest.mark.parametrize("run", ["site", "server"])
def test_what_came_home_is_of_every_job_that_left_a_model(runs, run):
    run = getattr(runs, run)
    home = [server.parent.name for server in run.servers]
    left = [part.job_id for part in run.parts if part.rounds or part is run.parts[-1]]
    assert home == left[-len(home) :]
    assert load(run.servers[-1] / "models/last.npz").manifest["round"] == ROUNDS


@pytest.mark.parametrize("run", ["site", "server"])
def test_no_whole_round_is_made_twice(runs, run):
    made = [number for part in getattr(runs, run).parts for number in part.rounds]
    assert made == list(range(1, ROUNDS + 1))


def test_what_a_full_disk_could_not_take_is_named(runs):
    record = part_of(runs.server, "server:3:full").record
    (failed,) = [event["reason"] for event in record if event["event"] == "failed"]
    assert "npz' could not be written: No space left on device" in failed
    assert "make room, and continue the job" in failed


def test_the_reason_of_a_sites_error_is_in_its_own_log_alone(runs):
    for site, reason in {"south": "the GPU is gone", "north": "00000013_004.png is trunc"}.items():
        assert reason in runs.logs[site]
        record = [json.dumps(part.record) for part in runs.site.parts]
        assert reason not in "".join(record)


def test_a_test_that_was_cut_off_is_made_up_for_by_a_job_without_rounds(runs, undisturbed):
    cut_off, made_up = runs.server.parts[-2:]
    assert cut_off.made == made_up.made == ROUNDS and not made_up.rounds
    last = runs.server.servers[-1]
    results = json.loads((last / "cross_site_val/cross_val_results.json").read_text())
    expected = undisturbed.result().measured()
    for site in SITES:
        for model in ("SRV_best", "SRV_last"):
            for name in SITES[site]["classes"]:
                metric = f"bce/{name}"
                assert results[site][model][metric] == expected[site][model][metric]
    tell(
        SERVER["south:test:hold"][0], ended=part_of(runs.server, "south:test:hold").status,
        repeated=0, seconds=None, distance=0.0,
    )  # fmt: skip
