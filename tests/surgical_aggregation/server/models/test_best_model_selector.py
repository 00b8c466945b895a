"""What a run's events tell the selector; how models are compared is `model_selection`'s."""

import numpy as np
import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.fl_context import FLContextManager
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, column, context, global_model
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.models.best_model_selector import BestModelSelector
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.wire import headers
from surgical_aggregation.wire.headers import AVERAGE, BEST, BEST_ROUND, CANDIDATE, REFIT

ABORT = Signal()
ABORT.trigger("abort")


class Run:
    """A selector in a run of the sites a and b, and what it announced."""

    def __init__(self, **facts):
        self.selector = BestModelSelector()
        self.engine = Engine(selector=self.selector)
        self.engine.sites = "ab"
        self.manager = FLContextManager(job_id="job")
        self.records, self.gone = [], {}
        self.become(**facts)

    def context(self, *about, **props):
        return context(*about, engine=self.engine, props=props, manager=self.manager)

    def become(self, **facts):
        """The model in memory is this one."""
        model = global_model({}, dict.fromkeys(("Edema", "Mass"), column(0)))
        manifest = model.manifest.with_facts(**facts)
        GlobalModel(model.variables, manifest).set_current(self.context())

    @property
    def manifest(self):
        return GlobalModel.current(self.context()).manifest

    @property
    def best_round(self):
        return self.context().get_prop(BEST_ROUND)

    def fire(self, event, site=None, round_=None, **props):
        facts = {FLContextKey.WORKFLOW: "train", headers.GONE: self.gone, **props}
        fl_ctx = self.context(site, ("Edema",), round_, **facts)
        self.selector.handle_event(event, fl_ctx)
        if AppEventType.GLOBAL_BEST_MODEL_AVAILABLE in self.engine.events:
            self.engine.events.remove(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE)
            self.records.append(fl_ctx.get_prop(BEST))
        return fl_ctx

    def measured(self, event, losses, round_=None, **props):
        for site, loss in losses.items():
            metrics = {"bce": loss, "auroc/Edema": 0.75, "auroc/Hernia": 0.9, "auroc": 0.8}
            sent = {headers.RESULT: SiteResult({}, {}, metrics=metrics)}
            self.fire(event, site, round_, **sent, **props)

    def round(self, round_, losses, accepted=True):
        self.fire(AppEventType.ROUND_STARTED, round_=round_)
        taken = {AppConstants.AGGREGATION_ACCEPTED: accepted}
        self.measured(AppEventType.AFTER_CONTRIBUTION_ACCEPT, losses, round_, **taken)
        return self.fire(AppEventType.BEFORE_AGGREGATION, round_=round_)

    def final(self, losses, workflow="validate_final", end=(), **facts):
        """The sites measure the model in memory, with these facts, after training."""
        self.become(**{"round": 5, **facts})
        of = {FLContextKey.WORKFLOW: workflow}
        self.fire(EventType.START_WORKFLOW, **of)
        self.measured(AppEventType.VALIDATION_RESULT_RECEIVED, losses, **of)
        self.fire(EventType.END_WORKFLOW, **of, **dict(end))
        validated = headers.MODEL_VALIDATED in self.engine.events
        self.engine.events.clear()
        return validated


def test_a_rounds_model_is_chosen_by_accepted_results_and_its_manifest_has_what_was_measured():
    run = Run()
    run.round(3, {"a": 0.1}, accepted=False)
    assert run.records == [] and "validation" not in run.manifest
    run.round(4, {"b": 0.5, "a": 0.25})
    classes = {"a": ["Edema"], "b": ["Edema"]}
    record = dict(round=4, metric="bce", value=0.375, sites={"a": 0.25, "b": 0.5})
    record |= {"classes": classes, "columns": ["Edema", "Mass"]}
    assert run.records == [record] and run.best_round == 4
    own = {"Edema": 0.75}  # of columns that the model does not have, none: they were warmed up
    assert run.manifest["validation"] == {"round": 4, "auroc": {"a": own, "b": own}}
    assert run.manifest[headers.BEST_OF_ROUNDS] == record


def test_the_manifest_counts_rounds_since_the_best_model_that_could_not_be_compared():
    run, both, counts = Run(), {"a": 0.5, "b": 0.5}, []
    for round_, losses in enumerate([both, {}, both, {}, {"a": 0.4, "b": 0.4}, both]):
        run.round(round_, losses)
        counts.append(run.manifest.get("not_compared", 0))
    assert counts == [0, 1, 1, 2, 0, 0]


def test_of_a_personal_model_nothing_is_said_for_it_is_not_the_global_one():
    run = Run(strategy="fedbn")
    run.round(0, {"a": 0.5, "b": 0.5})
    assert "validation" not in run.manifest and run.best_round == 0


def test_sites_that_left_for_good_are_not_waited_for():
    run = Run()
    run.round(0, dict.fromkeys("abcde", 0.5))
    run.round(1, {"a": 0.4, "b": 0.4})  # of five
    assert run.best_round == 0
    run.gone = {"c": "no heartbeat", "d": "likewise"}
    run.round(2, {"a": 0.3, "b": 0.3})
    assert run.best_round == 2


@pytest.mark.parametrize("loss", [np.nan, -0.1, None, np.ones(2), "x" * 5000])
def test_losses_that_are_no_numbers_do_not_count_and_are_one_line_of_the_log(loss, caplog):
    run = Run()
    run.round(0, {"a": loss})
    (line,) = [r.getMessage() for r in caplog.records if "usable" in r.getMessage()]
    assert run.records == [] and line.isprintable() and len(line) < 2000


def test_the_final_model_counts_with_what_those_sites_measured_whose_results_were_accepted(caplog):
    run = Run()
    run.round(0, {"a": 0.5})
    assert run.final({"a": 0.25, "b": 0.125}) and run.best_round == 5
    assert [best["value"] for best in run.records] == [0.5, 0.25]
    assert "b has no vote on this model: none of its training results was accepted" in caplog.text
    assert "what a measured" not in caplog.text
    assert "not_compared" not in run.manifest
    run = Run()  # of a continued run that makes no round
    run.final({"a": 0.1, "b": 0.3}, classes={"Edema": {"sites": ["a", "b"], "last_round": 4}})
    assert [best["value"] for best in run.records] == [0.2]


@pytest.mark.parametrize("why", [
    {FLContextKey.FATAL_SYSTEM_ERROR: True}, {ReservedKey.RUN_ABORT_SIGNAL: ABORT},
], ids=["panic", "abort"])  # fmt: skip
def test_the_final_model_is_not_chosen_where_the_run_was_ended_before_all_could_measure_it(why):
    run = Run()
    run.round(0, {"a": 0.5, "b": 0.5})
    assert not run.final({"a": 0.1}, end=why) and run.best_round == 0
    assert run.final({"a": 0.1}) and run.best_round == 5


def test_a_candidate_can_be_the_best_and_leaves_early_stopping_as_it_was(logged):
    run = Run()
    run.round(0, {"a": 0.5, "b": 0.7})
    assert run.final({"a": 0.4, "b": 0.6}, "validate_average", **{CANDIDATE: AVERAGE})
    assert run.final({"a": 0.3, "b": 0.8}, "validate_refit", **{CANDIDATE: REFIT})
    assert [best.get(CANDIDATE) for best in run.records] == [None, AVERAGE]
    assert run.best_round == 0
    lines = " ".join(logged["info"])
    assert "the model of round 5, averaged over late rounds, is the best: bce 0.5000" in lines
    assert "the model of round 5, its columns refitted, is not better" in lines
    count = len(logged["info"])  # where there is none, the model in memory is another
    assert not run.final({}, "validate_refit") and len(logged["info"]) == count


RECORD = dict(round=2, metric="bce", value=0.5, sites={"a": 0.5}, classes={"a": ["Edema"]},
              columns=["Edema"])  # fmt: skip


class TestContinued:
    def run(self, record, **facts):
        run = Run(**facts)
        run.fire(AppEventType.INITIAL_MODEL_LOADED, **{BEST: record})
        return run

    def test_the_earlier_best_is_the_one_to_beat_and_stopping_counts_from_the_rounds_one(self):
        of_rounds = {**RECORD, "round": 1, "sites": {"a": 0.6}}
        run = self.run(RECORD, **{headers.BEST_OF_ROUNDS: of_rounds})
        assert run.best_round == 1
        run.round(5, {"a": 0.55})
        assert run.records == [] and run.best_round == 5
        run.round(6, {"a": 0.4})
        assert [best["round"] for best in run.records] == [6]

    def test_one_that_cannot_be_compared_is_dropped_with_the_reason(self, caplog):
        run = self.run({**RECORD, "metric": "focal"})
        fl_ctx = run.round(5, {"a": 0.9})
        reason = fl_ctx.get_prop(headers.DROPPED)["reason"]
        assert reason.startswith("its loss is 'focal', and this")
        assert headers.BEST_DROPPED in run.engine.events and run.best_round == 5
        assert "the best model so far, of round 2, is dropped: its loss" in caplog.text

    def test_without_one_there_is_none(self):
        run = self.run(None, **{headers.BEST_OF_ROUNDS: RECORD})
        assert run.best_round is None and headers.BEST_OF_ROUNDS not in run.manifest
