"""What a site remembers between rounds, processes and jobs, as its executor uses it."""

from pathlib import Path

import numpy as np
import pytest
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.signal import Signal

from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.site.site_state import PREVIOUS_FILE, STATE_FILE, load_state
from surgical_aggregation.wire import variables as wire
from tiny_tasks import COLUMNS, carried_out, column, folder, task, weights


@pytest.fixture
def site(array_site):
    return array_site


class TestContinuation:
    """A run of two rounds in one process, and the same in two."""

    def test_a_new_process_of_the_job_goes_on_with_the_optimizer(self, start, body):
        executor, fl_ctx = start()
        for round_ in (0, 1):
            last = executor.execute("train", task(body, COLUMNS, round_=round_), fl_ctx, Signal())
        for round_ in (0, 1, 1):  # the last one over again, from the state before it
            again = carried_out(start, "train", task(body, COLUMNS, round_=round_))
        for name, value in weights(last).items():
            assert value.tobytes() == weights(again)[name].tobytes()

    def test_a_fresh_run_takes_up_nothing(self, start, body):
        first = carried_out(start, "train", task(body, COLUMNS, round_=0))
        again = carried_out(start, "train", task(body, COLUMNS, round_=0))
        for name, value in weights(first).items():
            assert value.tobytes() == weights(again)[name].tobytes()

    def test_a_continued_job_takes_up_the_earlier_ones_state(self, start, body, tmp_path):
        executor, fl_ctx = start()
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        last = executor.execute("train", task(body, COLUMNS, round_=1), fl_ctx, Signal())
        checkpoints = tmp_path / "server" / "checkpoints"
        executor, fl_ctx = start()
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        (checkpoints / "job").rename(checkpoints / "earlier")
        continues = {"jobs": ["earlier"], "round": 1}
        again = carried_out(start, "train", task(body, COLUMNS, round_=1, continues=continues))
        for name, value in weights(last).items():
            assert value.tobytes() == weights(again)[name].tobytes()

    def test_a_job_whose_state_is_ahead_of_the_server_is_passed_over_for_the_one_before(
        self, start, body, tmp_path
    ):
        checkpoints = tmp_path / "server" / "checkpoints"
        executor, fl_ctx = start()
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        last = executor.execute("train", task(body, COLUMNS, round_=1), fl_ctx, Signal())
        (checkpoints / "job").rename(checkpoints / "failed")  # its first round was never finished
        (checkpoints / "failed" / PREVIOUS_FILE).unlink()
        carried_out(start, "train", task(body, COLUMNS, round_=0))
        (checkpoints / "job").rename(checkpoints / "earlier")
        continues = {"jobs": ["failed", "earlier"], "round": 1}
        again = carried_out(start, "train", task(body, COLUMNS, round_=1, continues=continues))
        for name, value in weights(last).items():
            assert value.tobytes() == weights(again)[name].tobytes()

    @pytest.mark.parametrize("job", ["../job", "../../checkpoints/job", "", "a\nb", 3])
    def test_a_job_that_is_none_leads_nowhere(self, start, body, tmp_path, caplog, job):
        """It would be this site's own state, by another way."""
        carried_out(start, "train", task(body, COLUMNS, round_=0))
        (tmp_path / "server/checkpoints/job").rename(tmp_path / "server/job")
        executor, fl_ctx = start()
        told = task(body, COLUMNS, round_=1, continues={"jobs": [job], "round": 1})
        for _ in range(2):
            reply = executor.execute("train", told, fl_ctx, Signal())
            assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
        assert "a job's id needs letters, digits" in start.notes()
        assert not list(tmp_path.glob("server/checkpoints/*"))

    def test_a_site_without_state_says_that_it_starts_afresh(self, start, body, caplog):
        caplog.set_level("INFO")
        continues = {"jobs": ["earlier"], "round": 3}
        carried_out(start, "train", task(body, COLUMNS, continues=continues))
        assert "no state of the earlier run for this round" in caplog.text

    def test_a_site_with_other_classes_starts_afresh_and_says_so(self, start, site, body, caplog):
        caplog.set_level("INFO")
        carried_out(start, "train", task(body, COLUMNS, round_=0))
        Path(site.table).write_text('{"north": {"classes": ["Edema"], "images": 20}}')
        del site.training_labels  # which a process reads once
        sent = {"Edema": column(1)}
        reply = carried_out(start, "train", task(body, sent, round_=1))
        assert reply.get_return_code() == ReturnCode.OK
        assert "classes are not those of job job any more" in caplog.text


DENSE = {"dense/kernel", "dense/bias"}


def personal(fl_ctx):
    """The site's personal variables after its newest round, by path."""
    state = load_state(folder(fl_ctx))[0].training
    return {n.removeprefix("personal/"): v for n, v in state.items() if n.startswith("personal/")}


class TestDamage:
    """The site's state is damaged when a process of the job starts anew."""

    @pytest.fixture
    def damaged(self, start, body, caplog):
        """Makes rounds 0 and 1 under FedBN, then damages files; what round 1 started with."""
        caplog.set_level("INFO")

        def make(*names):
            executor, fl_ctx = start(strategy="fedbn")
            rounds = [task(body, COLUMNS, round_=round_) for round_ in (0, 1)]
            first, _ = (executor.execute("train", told, fl_ctx, Signal()) for told in rounds)
            for name in names:
                path = folder(fl_ctx) / name
                path.write_bytes(path.read_bytes()[:-30])
            return weights(first)

        return make

    def test_the_state_before_is_taken_up_and_the_log_says_so(self, start, body, damaged, caplog):
        damaged(STATE_FILE)
        executor, fl_ctx = start(strategy="fedbn")
        reply = executor.execute("train", task(body, COLUMNS, round_=2), fl_ctx, Signal())
        assert reply.get_return_code() == ReturnCode.OK
        said = "site_state.npz of job job is damaged (CheckpointError); goes on with this site's "
        assert f"{said}state after 1 rounds of job job" in caplog.text
        assert str(folder(fl_ctx)) not in caplog.text  # the reason holds it, and is in the notes
        assert str(folder(fl_ctx)) in start.notes()
        state, still = load_state(folder(fl_ctx), 2)
        assert still == {} and load_state(folder(fl_ctx))[0].round == 3 and state.round == 1

    def test_personal_variables_that_are_lost_are_not_taken_for_those_before(
        self, start, body, damaged
    ):
        damaged(STATE_FILE)
        last = task(body, COLUMNS, round_=None, best=2, model=2)
        reply = carried_out(start, "test", last, strategy="fedbn")
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION

    def test_with_both_damaged_it_starts_afresh_and_says_so(self, start, body, damaged, caplog):
        damaged(STATE_FILE, PREVIOUS_FILE)
        reply = carried_out(start, "train", task(body, COLUMNS, round_=2), strategy="fedbn")
        assert reply.get_return_code() == ReturnCode.OK
        assert "site_state_before.npz of job job is damaged" in caplog.text
        assert "the optimizer and personal variables start afresh" in caplog.text


class TestPersonal:
    def test_a_personal_head_is_warmed_up_once_and_then_the_sites_own(self, start, body, caplog):
        caplog.set_level("INFO")
        executor, fl_ctx = start(personal_head=True)
        executor.execute("train", task(body, round_=0), fl_ctx, Signal())
        trained = load_state(folder(fl_ctx))[0].training["personal/head/kernel"]
        moved = {name: value + 1 for name, value in body.items()}
        executor.execute("train", task(moved, round_=1), fl_ctx, Signal())
        assert caplog.text.count("warmed up the columns of 2 classes") == 1
        kept = load(folder(fl_ctx) / "site_last.npz")
        own = wire.split(kept.variables)[1]["Edema"][0]
        np.testing.assert_array_equal(own, trained[:, 0])
        np.testing.assert_array_equal(kept.variables["dense/bias"], moved["dense/bias"])

    def test_fedbn_keeps_its_own_batch_norm_whatever_comes(self, start, body):
        executor, fl_ctx = start(strategy="fedbn")
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        own = personal(fl_ctx)["bn/gamma"]
        assert not np.array_equal(own, body["bn/gamma"])
        moved = {name: value + 1 for name, value in body.items()}
        last = task(moved, COLUMNS, round_=None, model=1)
        executor.execute("validate", last, fl_ctx, Signal())
        kept = load(folder(fl_ctx) / "site_last.npz").variables
        np.testing.assert_array_equal(kept["bn/gamma"], own)
        np.testing.assert_array_equal(kept["dense/bias"], moved["dense/bias"])

    def test_its_own_model_says_which_variables_are_batch_normalisation(self, start, body):
        executor, fl_ctx = start(strategy="fedbn")
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        manifest = load(folder(fl_ctx) / "site_last.npz").manifest
        assert manifest["variable_kinds"]["batch_norm"] == sorted(set(body) - DENSE)

    def test_the_best_model_has_the_personal_variables_of_its_round(self, start, body):
        executor, fl_ctx = start(strategy="fedbn")
        trained = []
        for r, b in ((0, None), (1, None), (2, 1)):
            executor.execute("train", task(body, COLUMNS, round_=r, best=b), fl_ctx, Signal())
            trained.append(personal(fl_ctx))
        tested = task(body, COLUMNS, round_=None, best=1, model=1)
        executor.execute("test", tested, fl_ctx, Signal())
        best = load(folder(fl_ctx) / "site_best.npz")
        np.testing.assert_array_equal(best.variables["bn/gamma"], trained[0]["bn/gamma"])
        assert best.manifest["round"] == 1

    @pytest.mark.parametrize("processes", [1, 3])
    def test_of_a_round_that_the_site_missed_it_has_those_of_that_time(
        self, start, body, processes
    ):
        executor, fl_ctx = start(strategy="fedbn")
        trained = []
        for round_, best in ((0, None), (3, 2), (4, 2)):  # round 2 was made without it
            sent = task(body, COLUMNS, round_=round_, best=best)
            executor.execute("train", sent, fl_ctx, Signal())
            trained.append(personal(fl_ctx))
            if processes > 1:
                executor, fl_ctx = start(strategy="fedbn")
        tested = task(body, COLUMNS, round_=None, best=2, model=2)
        executor.execute("test", tested, fl_ctx, Signal())
        best = load(folder(fl_ctx) / "site_best.npz").variables
        assert (trained[0]["bn/gamma"] != trained[1]["bn/gamma"]).any()
        np.testing.assert_array_equal(best["bn/gamma"], trained[0]["bn/gamma"])

    def test_the_best_round_is_remembered_by_a_new_process(self, start, body):
        own = []
        for round_, best in ((0, None), (1, None), (2, 1)):
            executor, fl_ctx = start(strategy="fedbn")
            executor.execute(
                "train", task(body, COLUMNS, round_=round_, best=best), fl_ctx, Signal()
            )
            own.append(personal(fl_ctx))
        executor, fl_ctx = start(strategy="fedbn")
        tested = task(body, COLUMNS, round_=None, best=1, model=1)
        executor.execute("test", tested, fl_ctx, Signal())
        best = load(folder(fl_ctx) / "site_best.npz").variables
        np.testing.assert_array_equal(best["bn/gamma"], own[0]["bn/gamma"])

    @pytest.mark.parametrize(
        ("away", "best"),
        [([1], 1), ([1, 2, 3], 1), ([1, 2, 3], 3), ([2], 2)],
        ids=["came back", "stayed away", "in later rounds", "later"],
    )
    def test_a_site_that_was_away_in_the_best_round_has_what_it_had_before(
        self, start, body, away, best
    ):
        executor, fl_ctx = start(strategy="fedbn")
        before = None
        for round_ in range(4):
            known = best if round_ > best else None
            told = task(body, COLUMNS, round_=round_, best=known)
            if round_ not in away:
                executor.execute("train", told, fl_ctx, Signal())
                if round_ < best:
                    before = personal(fl_ctx)["bn/gamma"]
        tested = task(body, COLUMNS, round_=None, best=best, model=best)
        assert executor.execute("test", tested, fl_ctx, Signal()).get_return_code() == "OK"
        kept = load(folder(fl_ctx) / "site_best.npz").variables
        np.testing.assert_array_equal(kept["bn/gamma"], before)

    @pytest.mark.parametrize("name", ["validate", "test"])
    def test_a_site_that_never_trained_measures_no_model(self, start, body, name):
        last = task(body, COLUMNS, round_=None, best=2, model=2)
        reply = carried_out(start, name, last, strategy="fedbn")
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
        assert f"{name} failed: the model of round 2 is another one at every" in start.notes()

    def test_a_site_that_joined_after_the_best_round_measures_the_last_model_alone(
        self, start, body
    ):
        executor, fl_ctx = start(strategy="fedbn")
        for round_ in (3, 4):
            told = task(body, COLUMNS, round_=round_, best=2)
            executor.execute("train", told, fl_ctx, Signal())
        codes = {}
        for name, model in (("test", 2), ("validate", 5)):
            measured = task(body, COLUMNS, round_=None, best=2, model=model)
            codes[name] = executor.execute(name, measured, fl_ctx, Signal()).get_return_code()
        assert codes == {"test": ReturnCode.EXECUTION_EXCEPTION, "validate": ReturnCode.OK}
        assert not (folder(fl_ctx) / "site_best.npz").exists()

    def test_where_no_variable_is_personal_every_site_measures(self, start, body):
        last = task(body, COLUMNS, round_=None, best=2, model=2)
        assert carried_out(start, "test", last).get_return_code() == ReturnCode.OK

    def test_without_personal_variables_no_model_stays_at_the_site(self, start, body):
        executor, fl_ctx = start()
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        executor.execute("test", task(body, COLUMNS, round_=None, model=1), fl_ctx, Signal())
        names = [path.name for path in folder(fl_ctx).iterdir()]
        assert names == ["site_state.npz"]  # of one round, so none before it
