"""Sites and servers that go away and come back, late or not at all, while a job runs."""

import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import psutil
import pytest

import deployed
import faults
from cxr_study.deployment import processes
from faulty_run import FaultyRun, kill, tell, together
from simulated import TWO, UNDISTURBED, distance, same

UNION = ["Edema", "Fracture", "Nodule/Mass"]

AWAY = ["north:0:last", "south:1:slow", "north:2:last", "south:3:away", "north:7:last"]
"""However late south starts or comes back, it takes part in rounds 0, 2 and 7."""

RESTARTS = {
    "elsewhere": {
        "south:1:hold": ("a site's process killed and restarted", "FINISHED:EXECUTION_EXCEPTION"),
        "north:2:hold": ("the server's process killed and started again", "LOST"),
    },
    "at_hand": {"south:test:hold": ("the server's process killed in the test", "LOST")},
}
"""Of two runs, by whether the runner may look into the places' workspaces or must ask the server:
planned item -> what it is, and how its job ends."""

STRUCK = [(runner, item) for runner, items in RESTARTS.items() for item in items]


def offline(system, site, until, struck):
    """What stops all processes of a site that is "away", until so many rounds are made."""

    def act(session, job_id):
        site_processes = processes.processes(system.kit(site))

        def each(how):
            for process in site_processes:
                with suppress(psutil.NoSuchProcess):  # a watchdog's sleep is short
                    getattr(process, how)()

        def wake():
            deadline = time.monotonic() + faults.LONGEST
            while deployed.rounds(system, job_id) < until and time.monotonic() < deadline:
                time.sleep(0.1)
            each("resume")
            faults.back(struck, site).touch()

        each("suspend")
        threading.Thread(target=wake).start()

    return act


def later(act):
    """What acts once the runner has been told how far its job is."""
    return lambda *asked: threading.Timer(3.0, act, asked).start()


@pytest.fixture(scope="module")
def runs(tmp_path_factory, undisturbed):
    """One after the other: a run that goes on without a site, and two whose services are killed."""
    folder = tmp_path_factory.mktemp("restarts")
    with deployed.poc_system(folder, TWO) as system:
        away = FaultyRun(
            system, folder / "away", plan=AWAY,
            when={"south:3:away": offline(system, "south", 5, folder / "away/struck")},
            num_rounds=8, min_clients=1, wait_seconds=2,
        )  # fmt: skip
        when = {
            "south:1:hold": later(kill(system.kit("south"), "client_train")),
            "north:2:hold": later(kill(system.server, "server_train")),
            "south:test:hold": later(kill(system.server, "server_train")),
        }
        restarted = {
            runner: FaultyRun(
                system, folder / runner, plan=list(items),
                when={item: when[item] for item in items},
                at_hand=runner == "at_hand", site_silence=10,
            )
            for runner, items in RESTARTS.items()
        }  # fmt: skip
        for run in (away, *restarted.values()):
            together(run)
        return SimpleNamespace(away=away, **restarted)


class TestAway:
    @pytest.fixture
    def taught(self, runs):
        """Rounds in which south's result was averaged: its own class changed."""
        kernels = [runs.away.after(n).variables["head/Fracture/kernel"] for n in range(1, 9)]
        return {n for n in range(1, 8) if kernels[n - 1].tobytes() != kernels[n].tobytes()}

    def test_the_run_goes_on_without_a_break(self, runs):
        (part,) = runs.away.parts
        assert part.status == "FINISHED:COMPLETED" and part.made == 8

    def test_a_site_misses_the_rounds_in_which_it_is_away_and_teaches_again_afterwards(
        self, taught
    ):
        assert 1 not in taught  # slow
        assert taught & {3, 4} == set()  # offline
        assert taught >= {2, 7}

    def test_the_model_is_not_far_from_the_undisturbed_runs_then(self, runs, undisturbed):
        off = {n: distance(runs.away.after(n), undisturbed.after(n)) for n in (2, 5)}
        assert 0 < off[2] < 0.3 and 0 < off[5] < 0.3
        tell("slow site, past the wait", ended="goes on", repeated=0, seconds=0.0, distance=off[2])
        tell("site offline for 2 rounds", ended="goes on", repeated=0, seconds=0.0, distance=off[5])

    def test_its_classes_keep_their_columns_meanwhile(self, runs):
        assert sorted(runs.away.checkpoint("last").manifest["classes"]) == UNION

    def test_a_late_result_is_not_averaged_into_a_later_round(self, runs, taught):
        """The column that it alone teaches is of each round the very one, bit for bit."""
        column = "head/Fracture/kernel"
        assert runs.away.trained("south", 1) is not None  # and it came late
        for round_ in taught:
            result = runs.away.trained("south", round_).variables[column]
            assert runs.away.after(round_ + 1).variables[column].tobytes() == result.tobytes()


class TestRestart:
    @pytest.mark.parametrize(("runner", "item"), STRUCK)
    def test_the_model_on_the_disk_is_the_undisturbed_runs_after_the_last_whole_round(
        self, runs, undisturbed, runner, item
    ):
        fault, status = RESTARTS[runner][item]
        run = getattr(runs, runner)
        part = run.parts[list(RESTARTS[runner]).index(item)]
        assert part.status == status
        assert sorted(part.model.manifest["classes"]) == UNION
        assert same(part.model, undisturbed.after(part.made))
        seconds, again = (None, 0) if item == "south:test:hold" else run.recovery(item)
        tell(fault, ended=status, repeated=again, seconds=seconds, distance=0.0)

    @pytest.mark.parametrize("runner", RESTARTS)
    def test_the_run_ends_with_the_undisturbed_runs_models_bit_for_bit(
        self, runs, undisturbed, runner
    ):
        for name in ("last", "best"):
            ours = getattr(runs, runner).checkpoint(name)
            assert same(ours, undisturbed.checkpoint(name))

    @pytest.mark.parametrize("runner", RESTARTS)
    def test_no_whole_round_is_made_twice(self, runs, runner):
        made = [number for part in getattr(runs, runner).parts for number in part.rounds]
        assert made == list(range(1, UNDISTURBED["num_rounds"] + 1))

    def test_a_site_that_was_started_again_is_named_as_the_reason(self, runs):
        record = runs.elsewhere.parts[0].record
        (failed,) = [event["reason"] for event in record if event["event"] == "failed"]
        assert "south: no sign of life for 10 s; a site that was started again" in failed

    @pytest.mark.parametrize("runner", RESTARTS)
    def test_a_lost_job_comes_home_where_its_place_is_at_hand(self, runs, runner):
        run = getattr(runs, runner)
        lost = [part.job_id for part in run.parts if part.status == "LOST"]
        at_hand = [part.job_id for part in run.parts if part.job_id not in lost or run.at_hand]
        assert lost and [server.parent.name for server in run.servers] == at_hand
