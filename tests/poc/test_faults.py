"""Sites, server and admin fail, in real processes: what each fault costs, and how the run ends.

Five runs on one system: three side by side, of which the third has personal heads and batch
normalisation; one that goes on without a site that is away; one whose services are killed and
started again. Every job that a fault ended is continued.
"""

import json
import threading
from contextlib import suppress
from types import SimpleNamespace

import psutil
import pytest

import deployed
import faults
from cxr_deployment import processes
from cxr_study.runs import job_results
from faulty_run import FaultyRun, kill, together
from simulated import PERSONAL, THREE, UNDISTURBED, distance, same, undisturbed_run
from surgical_aggregation.checkpoints.checkpoint import load

BROKE, LOST = "FINISHED:EXECUTION_EXCEPTION", "LOST"
RUNS = {
    "site": {"south:1:kill": BROKE, "north:3:image": BROKE},
    "server": {
        "south:1:hold": "FINISHED:ABORTED",  # by the admin, and continued by hand
        "north:2:hold": BROKE,  # its job process is killed
        "server:3:full": BROKE,
        "south:validate:hold": BROKE,  # its job process is killed in the validation
    },
    "personal": {"south:test:hold": BROKE},  # likewise in the final test
    "elsewhere": {
        "south:1:hold": BROKE,  # the site's process is killed and started again
        "north:2:hold": LOST,  # the server's is
        "south:test:hold": LOST,  # it is in the final test
    },
}
"""Run -> planned item -> how FLARE says that its job ends."""

FAULTS = [(run, item) for run, plan in RUNS.items() for item in plan]
AWAY = ["south:1:slow", "south:3:away"] + [
    f"{site}:{round_}:{'behind' if round_ in (1, 3) else 'last'}"
    for site in ("north", "west") for round_ in (0, 1, 2, 3, 7)
]  # fmt: skip
"""However late south starts or comes back, it takes part in rounds 0, 2 and 7."""


def offline(system, site, until, struck):
    """Suspends a site that is "away" until so many rounds are made."""

    def act(session, job_id):
        site_processes = processes.find_processes(system.kit(site))

        def each(how):
            for process in site_processes:
                with suppress(psutil.NoSuchProcess):  # a watchdog's sleep is short
                    how(process)

        def wake():
            with suppress(AssertionError):  # else it would sleep for ever
                deployed.until(lambda: deployed.rounds(system, job_id) >= until, faults.LONGEST)
            each(psutil.Process.resume)
            faults.back(struck, site).touch()

        each(psutil.Process.suspend)
        threading.Thread(target=wake).start()

    return act


def later(act):
    """Acts once the runner has seen the rounds so far."""
    return lambda *asked: threading.Timer(3.0, act, asked).start()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return undisturbed_run(tmp_path_factory, "three", THREE)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, undisturbed):
    folder = tmp_path_factory.mktemp("faults")
    with deployed.poc_system(folder, THREE) as system:
        job, server = kill(system.server), later(kill(system.server, "server_train"))
        when = {
            "server": {
                "south:1:hold": lambda session, job_id: session.abort(job_id, 60.0),
                "north:2:hold": job, "south:validate:hold": job,
            },
            "personal": {"south:test:hold": job},
            "elsewhere": {
                "south:1:hold": later(kill(system.kit("south"), "client_train")),
                "north:2:hold": server, "south:test:hold": server,
            },
        }  # fmt: skip
        settings = {"personal": PERSONAL, "elsewhere": {"site_silence": 20}}
        made = {
            name: FaultyRun(
                system, folder / name, list(plan), when.get(name, {}), name == "site",
                **settings.get(name, {}),
            )
            for name, plan in RUNS.items()
        }  # fmt: skip
        together(made["site"], made["server"], made["personal"])
        logs = [file for kit in system.workspaces.values() for file in kit.glob("*/log.txt")]
        logs += folder.glob("**/results/*/workspace/log.txt")
        logs = "".join(file.read_text() for file in logs)
        notes = "".join(f.read_text() for f in system.kit("north").glob("local_notes/*.txt"))
        away = FaultyRun(
            system, folder / "away", AWAY,
            when={"south:3:away": offline(system, "south", 5, folder / "away/struck")},
            num_rounds=8, min_clients=1, wait_seconds=2,
        )  # fmt: skip
        for run in away, made["elsewhere"]:
            together(run)
        twins = dict.fromkeys(RUNS, undisturbed)
        twins["personal"] = undisturbed_run(tmp_path_factory, "personal-three", THREE, **PERSONAL)
        left = {"logs": logs, "notes": notes, "twins": twins}
        return SimpleNamespace(**made, **left, away=away, system=system)


@pytest.fixture
def run(runs, request):
    return getattr(runs, request.param)


@pytest.fixture
def twin(runs, run):
    """The same without faults."""
    return runs.twins[run.folder.name]


def of(*names):
    return pytest.mark.parametrize("run", names, indirect=True)


class TestEnds:
    @pytest.mark.parametrize(("run", "item"), FAULTS, indirect=["run"])
    def test_the_model_on_the_disk_is_the_twins_after_the_last_whole_round(self, run, twin, item):
        part = run.parts[list(run.plan).index(item)]  # each ends a job, in the order of the plan
        # ABNORMAL: FLARE has killed the process of the server, which was late to end.
        status = BROKE if part.status == "FINISHED:ABNORMAL" else part.status
        assert status == RUNS[run.folder.name][item]
        assert part.model.manifest["round"] == part.made
        assert part.model.manifest["classes"] == twin.after(part.made).manifest["classes"]
        assert same(part.model, twin.after(part.made))

    @of(*RUNS)
    def test_the_run_ends_with_the_twins_models_and_makes_no_whole_round_twice(self, run, twin):
        for name in ("last", "best"):
            ours, theirs = run.checkpoint(name), twin.checkpoint(name)
            assert same(ours, theirs), name
            assert ours.manifest["best"] == theirs.manifest["best"]
            assert ours.manifest["classes"] == theirs.manifest["classes"]
        made = [number for part in run.parts for number in part.rounds]
        assert made == list(range(1, run.settings["num_rounds"] + 1))

    @of("site", "server", "elsewhere")
    def test_a_job_that_left_a_model_is_downloaded_but_a_lost_one(self, run):
        home = [server.parent.name for server in run.servers]
        ended = [part for part in run.parts if part.status != LOST]
        left = [part.job_id for part in ended if run.left_a_model(part.job_id)]
        assert home == left[-len(home) :]
        last = load(run.servers[-1] / "models/last.npz")
        assert last.manifest["round"] == UNDISTURBED["num_rounds"]

    @of("server", "personal")
    def test_an_evaluation_that_was_cut_off_is_made_by_a_job_without_rounds(self, run, twin):
        cut_off, made_up = run.parts[-2:]
        assert cut_off.made == made_up.made == run.settings["num_rounds"]
        assert not made_up.rounds
        assert made_up.status == "FINISHED:COMPLETED"
        file = run.servers[-1] / "cross_site_val/cross_val_results.json"
        results = json.loads(file.read_text())
        assert results == twin.measured()
        assert all(results[site]["SRV_best"] for site in THREE)
        curves = job_results.rounds(run.servers[-1], personal=True, made=made_up.made)
        assert [entry.round for entry in curves] == [made_up.made]  # a report has what is at hand

    @pytest.mark.parametrize("site", THREE)
    def test_every_site_has_its_own_best_model(self, runs, site):
        path = runs.system.kit(site) / "checkpoints" / runs.personal.newest / "site_best.npz"
        ours, theirs = load(path), runs.twins["personal"].own(site)
        assert same(ours, theirs)
        assert ours.manifest["round"] == theirs.manifest["round"]


class TestReasons:
    def test_the_server_says_which_file_or_site_ended_a_job(self, runs):
        full = runs.server.parts[list(RUNS["server"]).index("server:3:full")]
        silent = "south: no heartbeat for 20 s; a restarted site cannot rejoin"
        for part, reason in (
            (full, "npz' could not be written: No space left on device"),
            (runs.elsewhere.parts[0], silent),
        ):
            (failed,) = [event["reason"] for event in part.record if event["event"] == "failed"]
            assert reason in failed
        console = runs.server.console_output.getvalue()
        assert "could not be written: No space left on device" in console

    def test_a_sites_error_is_in_its_own_notes_alone_and_told_where_they_are_at_hand(self, runs):
        truncated = "00000013_004.png is truncated"
        assert truncated in runs.notes
        assert truncated not in runs.logs
        assert truncated not in "".join(json.dumps(part.record) for part in runs.site.parts)
        read = f"north: train failed: image {truncated}\nThe log of north is "
        assert f"failed after 3 of 5 rounds: {read}" in runs.site.console_output.getvalue()
        assert "validate: bce" in runs.logs  # the search reads what there is
        assert "Exception when handling event" not in runs.logs


class TestAway:
    """A site that is slow in round 1 and offline in rounds 3 and 4."""

    def test_the_run_goes_on_and_the_site_trains_again_afterwards(self, runs, undisturbed):
        (part,) = runs.away.parts
        assert part.status == "FINISHED:COMPLETED" and part.made == 8
        union = ["Edema", "Fracture", "Nodule/Mass"]
        assert sorted(runs.away.checkpoint("last").manifest["classes"]) == union
        for made in (2, 5):
            assert 0 < distance(runs.away.after(made), undisturbed.after(made)) < 0.3

    def test_a_late_result_is_not_averaged_into_a_later_round(self, runs):
        """In each round, the column that south alone trains is that round's, bit for bit."""
        column = "head/Fracture/kernel"
        kernels = [runs.away.after(n).variables[column].tobytes() for n in range(1, 9)]
        trained = {n for n in range(1, 8) if kernels[n - 1] != kernels[n]}
        assert trained & {1, 3, 4} == set() and trained >= {2, 7}
        assert runs.away.trained("south", 1)  # and it came late
        for round_ in trained:
            sent = runs.away.trained("south", round_).variables[column]
            assert kernels[round_] == sent.tobytes()
