"""Faults of a site, of the server and of people, in real processes: what is lost, and how it ends.

Three runs on one system, struck by faults; every job that a fault ended is continued. In the third,
every site has a head and batch normalisation of its own.
"""

import json
from types import SimpleNamespace

import pytest

import deployed
from faulty_run import FaultyRun, kill, tell, together
from simulated import PERSONAL, TWO, UNDISTURBED, same, undisturbed_run
from surgical_aggregation.checkpoints.checkpoint import load

SITE = {
    "south:1:kill": ("a site's job process killed", "FINISHED:EXECUTION_EXCEPTION"),
    "north:3:image": ("unreadable image in the middle of training", "FINISHED:EXECUTION_EXCEPTION"),
}
SERVER = {
    "south:1:hold": ("job aborted by the admin", "FINISHED:ABORTED"),
    "north:2:hold": ("server's job process killed", "FINISHED:EXECUTION_EXCEPTION"),
    "server:3:full": ("server's disk full", "FINISHED:EXECUTION_EXCEPTION"),
    "south:4:torn": ("bytes of a result that cannot be decoded", "FINISHED:EXECUTION_EXCEPTION"),
    "south:validate:hold": (
        "server's job process killed in the validation", "FINISHED:EXECUTION_EXCEPTION",
    ),
}  # fmt: skip
OWN = {
    "south:test:hold": ("server's job process killed in the test", "FINISHED:EXECUTION_EXCEPTION")
}
AFTER_THE_ROUNDS = ("south:validate:hold", "south:test:hold")
RUNS = {"site": SITE, "server": SERVER, "personal": OWN}
FAULTS = [(run, item) for run, plan in RUNS.items() for item in plan]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, undisturbed):
    """The three runs: one whose runner has the places at hand, and two as on a network."""
    folder = tmp_path_factory.mktemp("faults")
    with deployed.poc_system(folder, TWO) as system:
        strike = kill(system.server)
        when = {
            "south:1:hold": lambda session, job_id: session.abort(job_id),
            "north:2:hold": strike,
            "south:validate:hold": strike,
        }
        site, server, personal = together(
            FaultyRun(system, folder / "site", plan=list(SITE), at_hand=True),
            FaultyRun(system, folder / "server", plan=list(SERVER), when=when),
            FaultyRun(
                system, folder / "personal", plan=list(OWN), when=dict.fromkeys(OWN, strike),
                **PERSONAL,
            ),
        )  # fmt: skip
        own = undisturbed_run(tmp_path_factory, "personal", **PERSONAL)
        logs = {
            name: "".join(log.read_text() for log in place.glob("*/log.txt"))
            for name, place in system.places.items()
        }
        notes = {
            name: "".join(file.read_text() for file in place.glob("local_notes/*.txt"))
            for name, place in system.places.items()
        }
        home = "".join(log.read_text() for log in folder.glob("*/results/*/*/workspace/log.txt"))
        return SimpleNamespace(
            site=site, server=server, personal=personal, system=system,
            logs=logs, notes=notes, home=home,
            twins={"site": undisturbed, "server": undisturbed, "personal": own},
        )  # fmt: skip


def part_of(run, item):
    """The job that a fault ended: each ends one, in the order of the plan."""
    return run.parts[list(run.plan).index(item)]


@pytest.mark.parametrize(("run", "item"), FAULTS)
def test_the_model_on_the_disk_is_the_undisturbed_runs_after_the_last_whole_round(runs, run, item):
    twin, fault, status = runs.twins[run], *RUNS[run][item]
    run = getattr(runs, run)
    part = part_of(run, item)
    assert part.status == status
    assert part.model.manifest["round"] == part.made
    assert part.model.manifest["classes"] == twin.after(part.made).manifest["classes"]
    assert same(part.model, twin.after(part.made))
    seconds, again = (None, 0) if item in AFTER_THE_ROUNDS else run.recovery(item)
    tell(fault, ended=status, repeated=again, seconds=seconds, distance=0.0)


@pytest.mark.parametrize("run", RUNS)
def test_the_run_ends_with_the_undisturbed_runs_models_bit_for_bit(runs, run):
    twin, run = runs.twins[run], getattr(runs, run)
    for name in ("last", "best"):
        ours, theirs = run.checkpoint(name), twin.checkpoint(name)
        assert same(ours, theirs), name
        assert ours.manifest["best"] == theirs.manifest["best"]
        assert ours.manifest["classes"] == theirs.manifest["classes"]


@pytest.mark.parametrize("run", ["site", "server"])
def test_what_came_home_is_of_every_job_that_left_a_model(runs, run):
    run = getattr(runs, run)
    home = [server.parent.name for server in run.servers]
    left = [part.job_id for part in run.parts if run.left_a_model(part.job_id)]
    assert home == left[-len(home) :]
    assert load(run.servers[-1] / "models/last.npz").manifest["round"] == UNDISTURBED["num_rounds"]


@pytest.mark.parametrize("run", RUNS)
def test_no_whole_round_is_made_twice(runs, run):
    run = getattr(runs, run)
    made = [number for part in run.parts for number in part.rounds]
    assert made == list(range(1, run.knobs["num_rounds"] + 1))


def test_what_a_full_disk_could_not_take_is_named(runs):
    record = part_of(runs.server, "server:3:full").record
    (failed,) = [event["reason"] for event in record if event["event"] == "failed"]
    assert "npz' could not be written: No space left on device" in failed
    assert "make room, and continue the job" in failed


def test_the_reason_of_a_sites_error_is_in_its_own_notes_alone(runs):
    reason = "00000013_004.png is truncated"
    assert reason in runs.notes["north"]
    assert reason not in "".join(runs.logs.values()) + runs.home
    assert reason not in "".join(json.dumps(part.record) for part in runs.site.parts)


def test_the_runner_is_told_what_was_wrong(runs):
    """By the site's own notes where they are at hand, and by the record alone elsewhere."""
    read = "north: train failed: image 00000013_004.png is truncated\nThe log of north is "
    assert f"failed after 3 of 5 rounds: {read}" in runs.site.said.getvalue()
    assert "could not be written: No space left on device" in runs.server.said.getvalue()


@pytest.mark.parametrize("run", ["server", "personal"])
def test_what_was_cut_off_after_the_last_round_is_made_up_for_by_a_job_without_rounds(runs, run):
    run = getattr(runs, run)
    cut_off, made_up = run.parts[-2:]
    assert cut_off.made == made_up.made == run.knobs["num_rounds"]
    assert not made_up.rounds
    assert made_up.status == "FINISHED:COMPLETED"


@pytest.mark.parametrize("site", TWO)
@pytest.mark.parametrize("run", ["server", "personal"])
def test_every_site_measures_what_it_does_undisturbed(runs, run, site):
    server = getattr(runs, run).servers[-1]
    results = json.loads((server / "cross_site_val/cross_val_results.json").read_text())
    assert results[site] == runs.twins[run].measured()[site]
    assert results[site]["SRV_best"]


def test_the_final_model_is_judged_where_it_had_not_been(runs):
    assert runs.server.checkpoint("best").manifest["best"]["round"] == UNDISTURBED["num_rounds"]


@pytest.mark.parametrize("site", TWO)
def test_every_site_has_its_own_best_model(runs, site):
    path = runs.system.kit(site) / "checkpoints" / runs.personal.newest / "site_best.npz"
    ours, theirs = load(path), runs.twins["personal"].own(site)
    assert same(ours, theirs)
    assert ours.manifest["round"] == theirs.manifest["round"]


def test_no_component_stumbles(runs):
    logs = "".join(runs.logs.values()) + runs.home
    assert "validate: bce" in logs  # the search reads what there is
    assert "Exception when handling event" not in logs
