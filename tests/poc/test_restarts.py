"""Sites and servers that go away and come back, late or not at all, while a job runs."""

import threading
import time
from types import SimpleNamespace

import pytest

import deployed
from cxr_study.deployment import services
from faulty_run import ROUNDS, SITES, UNION, FaultyRun, kill, tell, together
from undisturbed import distance, same

pytestmark = [pytest.mark.poc, pytest.mark.keras]

AWAY = ["south:1:slow", "north:3:mark"]
RESTARTS = {
    "south:1:hold": ("a site's process killed and started again", "FINISHED:EXECUTION_EXCEPTION"),
    "north:2:hold": ("the server's process killed and started again", "LOST"),
}


def offline(system, site, until):
    """What stops all processes of a site until so many rounds are made."""

    def act(session, job_id):
        stopped = services.processes(system.kit(site))
        for process in stopped:
            process.suspend()

        def wake():
            while deployed.rounds(system, job_id) < until:
                time.sleep(0.1)
            for process in stopped:
                process.resume()

        threading.Thread(target=wake).start()

    return act


@pytest.fixture(scope="module")
def runs(tmp_path_factory, undisturbed):
    """Side by side, a run that goes on without a site, and one whose services are killed."""
    one, other = (tmp_path_factory.mktemp(name) for name in ("away", "restarted"))
    with deployed.poc_system(one, SITES) as first, deployed.poc_system(other, SITES) as second:
        away = FaultyRun(
            first, one / "run", plan=AWAY, when={AWAY[1]: offline(first, "south", until=6)},
            num_rounds=9, min_clients=1, wait_seconds=2,
        )  # fmt: skip
        when = {
            "south:1:hold": kill(second.kit("south"), "client_train"),
            "north:2:hold": kill(second.server, "server_train"),
        }
        restarted = FaultyRun(
            second, other / "run", plan=list(RESTARTS), when=when, site_silence=10
        )
        together(away, restarted)
        return SimpleNamespace(away=away, restarted=restarted)


class TestAway:
    @pytest.fixture
    def taught(self, runs):
        """Rounds in which south's result was averaged: its own class changed."""
        kernels = [runs.away.after(n).variables["head/Fracture/kernel"] for n in range(1, 10)]
        return {n for n in range(1, 9) if kernels[n - 1].tobytes() != kernels[n].tobytes()}

    def test_the_run_goes_on_without_a_break(self, runs):
        (part,) = runs.away.parts
        assert part.status == "FINISHED:COMPLETED" and part.made == 9

    def test_a_site_misses_the_rounds_in_which_it_is_away_and_teaches_again_afterwards(
        self, taught
    ):
        assert 1 not in taught  # slow
        assert taught & {4, 5} == set()  # offline
        assert taught & {2, 3} and taught & {6, 7, 8}

    def test_the_model_is_not_far_from_the_undisturbed_runs_then(self, runs, undisturbed):
        off = {n: distance(runs.away.after(n), undisturbed.result().after(n)) for n in (2, 5)}
        assert 0 < off[2] < 0.3 and 0 < off[5] < 0.3
        tell("slow site, past the wait", ended="goes on", repeated=0, seconds=0.0, distance=off[2])
        tell("site offline for 2 rounds", ended="goes on", repeated=0, seconds=0.0, distance=off[5])

    def test_its_classes_keep_their_columns_meanwhile(self, runs):
        assert sorted(runs.away.checkpoint("last").manifest["classes"]) == UNION

    def test_a_late_result_is_not_averaged_into_a_later_round(self, runs):
        """FLARE drops it; where the site was cut off while it was sent, the server refuses it."""
        refused = [event for event in runs.away.parts[0].record if event["event"] == "refused"]
        late = "it belongs to round 3, and round "
        assert all(e["site"] == "south" and e["reason"].startswith(late) for e in refused)


class TestRestart:
    @pytest.mark.parametrize("item", RESTARTS)
    def test_the_model_on_the_disk_is_the_undisturbed_runs_after_the_last_whole_round(
        self, runs, undisturbed, item
    ):
        fault, status = RESTARTS[item]
        part = runs.restarted.parts[list(RESTARTS).index(item)]
        assert part.status == status
        assert sorted(part.model.manifest["classes"]) == UNION
        assert same(part.model, undisturbed.result().after(part.made))
        seconds, again = runs.restarted.recovery(item)
        tell(fault, ended=status, repeated=again, seconds=seconds, distance=0.0)

    def test_the_run_ends_with_the_undisturbed_runs_models_bit_for_bit(self, runs, undisturbed):
        for name in ("last", "best"):
            assert same(runs.restarted.checkpoint(name), undisturbed.result().checkpoint(name))

    def test_no_whole_round_is_made_twice(self, runs):
        made = [number for part in runs.restarted.parts for number in part.rounds]
        assert made == list(range(1, ROUNDS + 1))

    def test_a_site_that_was_started_again_is_named_as_the_reason(self, runs):
        (failed,) = [e["reason"] for e in runs.restarted.parts[0].record if e["event"] == "failed"]
        assert failed.startswith("no sign of life of south for 10 s, and the run needs 2 sites.")
