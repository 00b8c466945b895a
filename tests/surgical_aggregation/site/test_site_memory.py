"""What a site remembers between rounds, processes and jobs, as its executor uses it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nvflare.apis.fl_constant import ReturnCode

from surgical_aggregation import __version__
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, save
from surgical_aggregation.checkpoints.model_facts import TrainedRounds, facts_of
from surgical_aggregation.site import site_memory
from surgical_aggregation.site.site_memory import PREVIOUS_FILE, STATE_FILE, SiteState, load_state
from surgical_aggregation.wire import variables as wire
from tiny_site import FEATURES
from tiny_tasks import column, weights


@pytest.fixture
def site(array_site):
    return array_site


def assert_same(one, other):
    for name, value in weights(one).items():
        assert value.tobytes() == weights(other)[name].tobytes()


def moved(body):
    return {name: value + 1 for name, value in body.items()}


def test_a_continued_run_is_the_same_as_one_in_one_process(process, tmp_path):
    straight = process()
    rounds = [straight.train(round_) for round_ in (0, 1)]
    assert_same(rounds[0], process().train(0))  # a fresh run restores nothing
    for round_ in (1, 1):  # the last one over again, from the state before it
        assert_same(rounds[1], process().train(round_))
    checkpoints = tmp_path / "server" / "checkpoints"
    (checkpoints / "job").rename(checkpoints / "failed")  # its first round was never finished
    (checkpoints / "failed" / PREVIOUS_FILE).unlink()
    process().train(0)
    (checkpoints / "job").rename(checkpoints / "earlier")
    continues = {"jobs": ["failed", "earlier"], "round": 1}
    assert_same(rounds[1], process().train(1, continues=continues))


def test_without_state_or_with_other_classes_a_site_says_that_it_is_fresh(process, site, caplog):
    process().train(3, continues={"jobs": ["earlier"], "round": 3})
    assert "no state of the earlier run for this round" in caplog.text
    Path(site.table).write_text('{"north": {"classes": ["Edema"], "images": 20}}')
    del site.training_labels  # which a process reads once
    reply = process().train(4, {"Edema": column(1)})
    assert reply.get_return_code() == ReturnCode.OK
    assert "classes differ from those of job job" in caplog.text


class TestDamage:
    """The site's state is damaged after two rounds under FedBN, when a new process starts."""

    def again(self, process, *names):
        """Damage files, and start a new process."""
        first = process(strategy="fedbn")
        for round_ in (0, 1):
            first.train(round_)
        for name in names:
            path = first.folder / name
            path.write_bytes(path.read_bytes()[:-30])
        return process(strategy="fedbn")

    def test_the_state_before_is_restored_and_the_log_says_so(self, start, process, caplog):
        again = self.again(process, STATE_FILE)
        lost = again.run("test", best=2, model=2)  # not with the personal variables of before
        assert lost.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
        assert again.train(2).get_return_code() == ReturnCode.OK
        text = "site_state.npz of job job is damaged (CheckpointError); restored this site's "
        assert f"{text}state after 1 rounds of job job" in caplog.text
        assert str(again.folder) not in caplog.text  # the reason holds it, and is in the notes
        assert str(again.folder) in start.notes()
        state, still = load_state(again.folder, 2)
        assert still == {} and load_state(again.folder)[0].round == 3 and state.round == 1

    def test_with_both_damaged_it_starts_afresh_and_says_so(self, process, caplog):
        again = self.again(process, STATE_FILE, PREVIOUS_FILE)
        assert again.train(2).get_return_code() == ReturnCode.OK
        assert "site_state_before.npz of job job is damaged" in caplog.text
        assert "the optimizer and personal variables start afresh" in caplog.text


class TestPersonal:
    def test_a_personal_head_is_warmed_up_once_and_then_the_sites_own(self, process, body, caplog):
        site = process(personal_head=True)
        site.train(0, {})
        trained = site.personal()["head/kernel"]
        site.body = moved(body)
        site.train(1, {})
        assert caplog.text.count("warmed up the columns of 2 classes") == 1
        kept = site.model("last").variables
        np.testing.assert_array_equal(wire.split(kept)[1]["Edema"][0], trained[:, 0])
        np.testing.assert_array_equal(kept["dense/bias"], site.body["dense/bias"])

    def test_fedbn_keeps_its_own_batch_norm_whatever_comes(self, process, body):
        site = process(strategy="fedbn")
        site.executor._tasks.training.lacking["Edema"] = "positive"
        site.train(0)
        own = site.personal()["bn/gamma"]
        assert not np.array_equal(own, body["bn/gamma"])
        site.body = moved(body)
        site.run("validate", model=1)
        kept = site.model("last")
        np.testing.assert_array_equal(kept.variables["bn/gamma"], own)
        np.testing.assert_array_equal(kept.variables["dense/bias"], site.body["dense/bias"])
        assert kept.manifest["classes"]["Edema"]["lacking"] == {"north": "positive"}
        facts = {"site": "north", "round": 1, "head_features": FEATURES}
        assert kept.manifest.items() >= facts.items()
        batch_norm = sorted(set(body) - {"dense/kernel", "dense/bias"})
        assert kept.manifest["variable_kinds"]["batch_norm"] == batch_norm

    @pytest.mark.parametrize("restarts", [False, True], ids=["one process", "a process a round"])
    @pytest.mark.parametrize(("rounds", "best", "own"), [
        ([0, 1, 2], 1, 0), ([0, 3, 4], 2, 0), ([0], 1, 0), ([0], 3, 0), ([0, 1, 3], 2, 1),
    ], ids=["there", "away then", "stayed away", "in later rounds", "later"])  # fmt: skip
    def test_the_best_model_has_its_rounds_variables(self, process, restarts, rounds, best, own):
        """Those that the site had then, also if it was absent."""
        site, trained = process(strategy="fedbn"), {}
        for round_ in rounds:
            site.train(round_, best=best if round_ > best else None)
            trained[round_] = site.personal()["bn/gamma"]
            site = process(strategy="fedbn") if restarts else site
        assert site.run("test", best=best, model=best).get_return_code() == ReturnCode.OK
        kept = site.model("best")
        np.testing.assert_array_equal(kept.variables["bn/gamma"], trained[own])
        assert kept.manifest["round"] == best
        assert all((trained[own] != value).any() for r, value in trained.items() if r != own)

    @pytest.mark.parametrize("rounds", [(), (3, 4)], ids=["never trained", "joined later"])
    def test_a_site_without_those_of_a_model_does_not_measure_it(self, start, process, rounds):
        site = process(strategy="fedbn")
        for round_ in rounds:
            site.train(round_, best=2)
        replies = [site.run("test", best=2, model=2), site.run("validate", best=2, model=5)]
        refused = ReturnCode.EXECUTION_EXCEPTION
        wanted = [refused, ReturnCode.OK if rounds else refused]
        assert [reply.get_return_code() for reply in replies] == wanted
        needs = "test failed: the model of round 2 needs this site's personal variables"
        assert needs in start.notes()
        assert not (site.folder / "site_best.npz").exists()

    @pytest.mark.parametrize("restarts", [False, True], ids=["one process", "a process a round"])
    def test_its_manifest_says_what_the_site_knows_of_it(self, process, body, restarts):
        site = process(strategy="fedbn")
        for round_ in (0, 1, 3):
            header = digest(body) if round_ == 0 else None
            site.train(round_, header=header, best=1 if round_ > 1 else None)
            site = process(strategy="fedbn") if restarts else site
        site.run("test", best=1, model=1)
        best, last = (facts_of(site.model(which)) for which in ("best", "last"))
        for facts in (best, last):
            assert (facts.site, facts.strategy, facts.version) == ("north", "fedbn", __version__)
            assert facts.initial_body_sha256 == digest(body)
            assert {*facts.lacks} == {"backbone", "hidden", "image_size", "input"}  # its network's
        rounds = {name: of.rounds for name, of in best.trained.items()}
        assert rounds == dict.fromkeys(best.classes, (TrainedRounds(0, 0, ("north",)),))
        assert last.trained["Edema"].rounds == (TrainedRounds(0, 1, ("north",)),)
        assert (best.validation.round, last.validation.round) == (1, 3)
        (measured,) = best.validation.auroc.values()
        assert measured.keys() == set(best.classes)

    def test_where_no_variable_is_personal_every_site_measures_and_keeps_no_model(self, process):
        site = process()
        assert site.run("test", best=2, model=2).get_return_code() == ReturnCode.OK
        site.train(0)
        assert [path.name for path in site.folder.iterdir()] == ["site_state.npz"]


def write(folder, *rounds):
    for round_ in rounds:
        site_memory.save_state(SiteState({"passes": np.array(round_)}, round_, ("Mass",)), folder)


def test_a_state_comes_back_as_it_was(tmp_path):
    assert load_state(tmp_path) == (None, {})
    training = {"optimizer/0": np.array(7), "personal/bn/gamma": np.ones(2)}
    kept = {2: {"bn/gamma": np.zeros(2)}, 11: {"bn/gamma": np.ones(2)}}
    site_memory.save_state(SiteState(training, 4, ("Mass", "Edema"), kept), tmp_path)
    back, damaged = load_state(tmp_path)
    assert (back.round, back.classes, damaged) == (4, ("Mass", "Edema"), {})
    np.testing.assert_equal(dict(back.training), training)
    np.testing.assert_equal(dict(back.kept), kept)


@pytest.mark.parametrize(("variables", "manifest"), [
    ({}, {"round": 1}), ({}, {"round": "one", "classes": []}), ({}, {"round": 1, "classes": 3}),
    *(({name: np.zeros(1)}, {"round": 1, "classes": []}) for name in ("kept/2", "kept/x/bn")),
])  # fmt: skip
def test_another_checkpoint_is_none(tmp_path, variables, manifest):
    save(Checkpoint(variables, manifest), tmp_path / STATE_FILE)
    state, damaged = load_state(tmp_path)
    assert state is None and "is not a site's state" in str(damaged[STATE_FILE])


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_newest_state_cut_anywhere_is_passed_over_for_the_one_before(tmp_path, data):
    write(tmp_path, 1, 2)
    whole = (tmp_path / STATE_FILE).read_bytes()
    (tmp_path / STATE_FILE).write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    state, damaged = load_state(tmp_path)
    assert state.round == 1 and list(damaged) == [STATE_FILE]


def test_the_state_before_is_kept_for_a_run_that_goes_back_a_round(tmp_path):
    write(tmp_path, 1, 2, 3)
    assert [load_state(tmp_path, before)[0].round for before in (None, 3, 2)] == [3, 3, 2]
    assert load_state(tmp_path, 1)[0] is None
