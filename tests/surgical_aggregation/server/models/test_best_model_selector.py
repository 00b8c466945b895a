"""What a run's events tell the selector; how two models are compared is `ModelComparison`'s."""

import math

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context, global_model, result
from surgical_aggregation.server.models.best_model_selector import BestModelSelector
from surgical_aggregation.server.models.global_model import GlobalModel, from_learnable
from surgical_aggregation.wire.headers import (
    AVERAGE,
    BEST,
    BEST_DROPPED,
    BEST_ROUND,
    CANDIDATE,
    DROPPED,
    GONE,
    MODEL_VALIDATED,
    REFIT,
)

COLUMN = (np.zeros(2, np.float32), np.zeros(1, np.float32))
EMPTY = global_model({})
EDEMA, BOTH = ("Edema",), ("Edema", "Mass")
ABORT = Signal()
ABORT.trigger("abort")
FLARE_ENDS = {FLContextKey.FATAL_SYSTEM_ERROR: True}
FLARE_STOPS = {ReservedKey.RUN_ABORT_SIGNAL: ABORT}


class Run:
    """A selector in a run of sites, and the records that it announced."""

    def __init__(self, sites="ab", **args):
        self.selector = BestModelSelector(**args)
        self.model = global_model({}, dict.fromkeys(BOTH, COLUMN))
        self.sites, self.gone = sites, {}
        self.records, self.dropped, self.best_round = [], [], "never said"
        self.validated = []

    @property
    def announced(self):
        return [(best["round"], best["value"]) for best in self.records]

    def fire_event(self, event_type, fl_ctx):
        if event_type == AppEventType.GLOBAL_BEST_MODEL_AVAILABLE:
            self.records.append(fl_ctx.get_prop(BEST))
        elif event_type == MODEL_VALIDATED:
            manifest = from_learnable(fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)).manifest
            self.validated.append(manifest["validation"])
        elif event_type == BEST_DROPPED:
            self.dropped.append(fl_ctx.get_prop(DROPPED))

    def fire(self, event_type, round_, props=(), site=None, classes=EDEMA, model=None):
        engine = Engine()
        engine.sites, engine.fire_event = self.sites, self.fire_event
        fl_ctx = context(site, classes, round_, model or self.model, engine)
        for key, value in {GONE: self.gone, FLContextKey.WORKFLOW: "train", **dict(props)}.items():
            fl_ctx.set_prop(key, value, private=True, sticky=False)
        self.selector.handle_event(event_type, fl_ctx)
        self.best_round = fl_ctx.get_prop(BEST_ROUND, self.best_round)

    def continue_from(self, record):
        """Start from a checkpoint of an earlier run, whose best model has this record."""
        self.fire(AppEventType.INITIAL_MODEL_LOADED, None, {BEST: record})

    def result(self, round_, site, loss, accepted=True, classes=EDEMA, model=None, **metrics):
        """A site's result of training."""
        sent = result({}, {"Edema": COLUMN}, metrics={"bce": loss, **metrics})
        props = {AppConstants.TRAINING_RESULT: sent, AppConstants.AGGREGATION_ACCEPTED: accepted}
        event = AppEventType.AFTER_CONTRIBUTION_ACCEPT
        self.fire(event, round_, props, site, classes, model)

    def round(self, round_, losses, accepted=True, classes=None, model=None):
        """`losses`: site -> loss; `classes`: site -> classes, where not Edema."""
        self.fire(AppEventType.ROUND_STARTED, round_)
        for site, loss in losses.items():
            self.result(round_, site, loss, accepted, (classes or {}).get(site, EDEMA), model)
        self.fire(AppEventType.BEFORE_AGGREGATION, round_, model=model)

    def final(self, last_round, losses, workflow="validate_final", end=(), **facts):
        """After the last round; of a job that made none of its own, no round is current.

        `end`: properties of the context when the workflow ends. Returns the model's manifest.
        """
        model = GlobalModel(self.model.variables, {"round": last_round + 1, **facts})
        final = {FLContextKey.WORKFLOW: workflow}
        self.fire(EventType.START_WORKFLOW, None, final, model=model)
        for site, loss in losses.items():
            measured = DXO(DataKind.METRICS, data={"bce": loss, "auroc/Edema": 0.75}).to_shareable()
            props = {**final, AppConstants.VALIDATION_RESULT: measured}
            self.fire(AppEventType.VALIDATION_RESULT_RECEIVED, None, props, site, model=model)
        self.fire(EventType.END_WORKFLOW, None, {**final, **dict(end)}, model=model)
        return model.manifest


class TestValidation:
    """The manifest of a model that was measured has its AUROC by site and class."""

    def measured(self, run, round_=4, **facts):
        model = GlobalModel(run.model.variables, {"round": round_, **facts})
        run.fire(AppEventType.ROUND_STARTED, round_, model=model)
        metrics = {"auroc": 0.5, "auroc/Edema": 0.5, "auroc/Hernia": 0.9, "bce/Edema": 0.1}
        run.result(round_, "a", 0.3, model=model, **metrics)
        run.result(round_, "b", math.nan, model=model, **metrics)
        run.fire(AppEventType.BEFORE_AGGREGATION, round_, model=model)
        return model.manifest.get("validation")

    def test_of_a_rounds_model_without_classes_that_a_site_had_to_warm_up(self):
        assert self.measured(Run()) == {"round": 4, "auroc": {"a": {"Edema": 0.5}}}

    def test_of_the_final_model_also_where_another_is_the_best(self):
        run = Run()
        run.round(0, {"a": 0.1})
        assert run.validated == []
        run.final(4, {"a": 0.2})
        validation = {"round": 5, "auroc": {"a": {"Edema": 0.75}}}
        assert run.validated == [validation] and run.best_round == 0

    def test_of_a_personal_model_none_for_it_is_not_the_global_one(self):
        assert self.measured(Run(), strategy="fedbn") is None


class TestCandidates:
    """Models made after training are measured and compared as the final one is."""

    def after(self, *candidates):
        run = Run()
        run.round(0, {"a": 0.5, "b": 0.7})
        for made, losses in candidates:
            run.final(4, losses, f"validate_{made}", **{CANDIDATE: made})
        return run

    def test_the_better_one_is_announced_with_what_it_is(self, logged):
        run = self.after((AVERAGE, {"a": 0.4, "b": 0.6}), (REFIT, {"a": 0.3, "b": 0.8}))
        assert run.announced == [(0, 0.6), (5, 0.5)]
        assert [best.get(CANDIDATE) for best in run.records] == [None, AVERAGE]
        said = " ".join(logged["info"])
        assert "the model of round 5, averaged over late rounds, is the best: bce 0.5000" in said
        assert "the model of round 5, its columns fitted anew, is not better" in said
        assert [facts["auroc"].keys() for facts in run.validated] == [{"a", "b"}] * 2

    def test_a_workflow_without_a_candidate_of_its_own_measures_nothing(self, logged):
        """The model in memory is the candidate of another workflow, then."""
        run = self.after((AVERAGE, {"a": 0.4, "b": 0.6}))
        said = list(logged["info"])
        run.final(4, {}, "validate_refit", **{CANDIDATE: AVERAGE})
        assert logged["info"] == said and len(run.validated) == 1

    def test_one_changes_neither_from_where_early_stopping_counts_nor_what_it_counts(self):
        run = self.after((AVERAGE, {"a": 0.1, "b": 0.1}))
        assert run.announced == [(0, 0.6), (5, 0.1)] and run.best_round == 0
        manifest = dict(run.model.manifest)
        continued = Run()
        continued.model.manifest.update(manifest)
        continued.continue_from(run.records[-1])
        assert continued.best_round == 0
        for round_, loss in ((5, 0.7), (6, 0.5)):
            continued.round(round_, {"a": loss, "b": loss})
        continued.round(7, {"a": 0.4})  # of two sites one: enough
        assert continued.announced == [] and continued.best_round == 7
        assert "not_compared" not in continued.model.manifest
        continued.round(8, {"a": 0.05, "b": 0.05})
        assert continued.announced == [(8, 0.05)]

    @pytest.mark.parametrize("workflow", ["validate_average", "validate_refit"])
    def test_without_one_no_round_is_counted_for_the_last_model_is_in_memory(self, workflow):
        run = self.after()
        assert run.final(4, {}, workflow) == {"round": 5} and run.validated == []


class TestRounds:
    @pytest.mark.parametrize(
        ("rounds", "announced"),
        [
            ([{"a": 0.5, "b": 0.7}, {"a": 0.2, "b": 0.8}, {"a": 0.4, "b": 0.9}], [0.6, 0.5]),
            ([{"a": 0.1}, {"a": 0.2}], [0.1]),
            ([{"a": 0.2}, {"a": 0.1, "b": 0.5}, {"a": 0.1, "b": 0.25}], [0.2, 0.3, 0.175]),
            ([{"a": 0.5, "b": math.nan}, {"a": 0.25, "b": math.nan}], [0.5, 0.25]),
        ],
        ids=["smallest mean", "round 0", "a site comes in", "a site whose loss is never finite"],
    )
    def test_the_model_with_the_smallest_loss_is_announced(self, rounds, announced):
        run = Run()
        for round_, losses in enumerate(rounds):
            run.round(round_, losses)
        assert [value for _, value in run.announced] == announced

    def test_a_model_needs_the_columns_of_all_declared_classes_if_any(self):
        run = Run()
        run.round(0, {"a": 0.1}, model=EMPTY)
        assert run.best_round == "never said"
        run.round(1, {"a": 0.2})
        assert (run.announced, run.best_round) == ([(1, 0.2)], 1)
        run = Run()
        run.round(0, {"a": 0.5}, classes={"a": ()}, model=EMPTY)
        assert run.announced == [(0, 0.5)]

    def test_enough_sites_must_have_measured_it_without_those_that_left_for_good(self):
        run = Run(min_share=0.75)
        run.round(0, dict.fromkeys("abc", 0.5))
        run.round(1, {"a": 0.4, "b": 0.4})  # of three sites two
        assert run.best_round == 0
        run.gone = {"c": "no sign of life"}
        run.round(2, {"a": 0.3, "b": 0.3})
        assert run.best_round == 2

    @pytest.mark.parametrize("share", [0, -0.5, 1.5])
    def test_a_share_outside_0_to_1_is_refused(self, share):
        with pytest.raises(ValueError, match="min_share must be above 0 and at most 1"):
            BestModelSelector(min_share=share)

    def test_the_manifest_counts_rounds_since_the_best_model_that_could_not_be_compared(self):
        run = Run()
        counts = []
        run.round(9, {"a": 0.1}, model=EMPTY)  # there is no best model yet
        everybody = {"a": 0.5, "b": 0.5, "c": 0.5}
        for losses in (everybody, {"a": 0.1}, everybody, {}, {"a": 0.4, "b": 0.4}, everybody):
            run.round(len(counts), losses)
            counts.append(run.model.manifest.get("not_compared", 0))
        assert counts == [0, 1, 1, 2, 0, 0] and "not_compared" not in EMPTY.manifest

    def test_the_record_says_who_measured_it_with_which_classes_and_what_the_model_has(self):
        run = Run()
        run.round(0, {"b": 0.5, "a": 0.25}, classes=dict.fromkeys("ab", ("Mass", "Edema")))
        classes = ["Edema", "Mass"]
        assert run.records == [
            {
                "round": 0, "metric": "bce", "value": 0.375, "sites": {"a": 0.25, "b": 0.5},
                "classes": {"a": classes, "b": classes}, "columns": classes,
            }
        ]  # fmt: skip

    def test_losses_of_refused_or_late_results_or_of_an_unfinished_round_do_not_count(self):
        run = Run()
        run.round(0, {"a": 0.1}, accepted=False)
        run.fire(AppEventType.ROUND_STARTED, 1)
        run.result(1, "b", 0.9)  # in a round that is begun anew
        assert run.announced == []
        run.round(2, {"a": 0.5})
        run.result(2, "b", 0.9)
        run.round(3, {"a": 0.5, "b": 0.1})  # over a alone: no better
        assert run.announced == [(2, 0.5)]

    @pytest.mark.parametrize(
        "loss", [math.nan, math.inf, -0.1, "0.1", None, np.ones(2), "x" * 5000]
    )
    def test_losses_that_are_no_numbers_do_not_count_and_are_one_line_of_the_log(
        self, loss, caplog
    ):
        run = Run()
        run.round(0, {"a": loss})
        (said,) = [r.getMessage() for r in caplog.records if "usable" in r.getMessage()]
        assert run.announced == [] and said.isprintable() and len(said) < 2000


def record(metric="bce", classes=EDEMA, **losses):
    """Of an earlier run's best model, that of round 2."""
    facts = {"value": sum(losses.values()) / len(losses), "sites": losses}
    of = {site: list(classes) for site in losses}
    return {"round": 2, "metric": metric, "classes": of, **facts}


class TestFinalModel:
    def test_counts_with_what_those_sites_measured_whose_results_were_accepted(self, caplog):
        run = Run()
        run.round(0, {"a": 0.5, "c": 0.5})  # c does not measure the final one
        run.final(0, {"a": 0.25, "b": 0.125})
        assert run.announced == [(0, 0.5), (1, 0.25)]
        assert "what b measured does not count" in caplog.text
        assert "what a measured" not in caplog.text

    @pytest.mark.parametrize(
        ("before", "rounds", "trained_by", "loss"),
        [
            ({"a": 0.25, "b": 0.5}, [{"a": 0.5}], [], 0.25),
            (None, [], ["a"], 0.125),
            ({"a": 0.25}, [], ["a", "b"], 0.25),
        ],
        ids=["b measured the best model", "b did not train", "b trained in the earlier run"],
    )
    def test_of_a_continued_run_counts_with_what_the_earlier_runs_sites_measured(
        self, before, rounds, trained_by, loss
    ):
        run = Run()
        run.continue_from(before and record(**before))
        for losses in rounds:
            run.round(7, losses)
        facts = {"Edema": {"sites": trained_by, "last_round": 7}}
        run.final(7, {"a": 0.125, "b": 0.375}, classes=facts)
        assert run.announced == [(8, loss)]

    def test_is_counted_by_the_round_that_starts_from_it_alone(self):
        run = Run()
        run.round(0, dict.fromkeys("abc", 0.5))
        assert "not_compared" not in run.final(3, {"a": 0.1})

    @pytest.mark.parametrize("why", [FLARE_ENDS, FLARE_STOPS], ids=["panic", "abort"])
    def test_is_not_chosen_where_the_run_was_ended_before_all_sites_could_measure_it(self, why):
        run = Run()
        run.round(0, {"a": 0.5, "b": 0.5})
        run.final(3, {"a": 0.1}, end=why)
        assert run.best_round == 0 and run.validated == []
        run.final(3, {"a": 0.1})
        assert run.best_round == 4


class TestContinued:
    def test_the_earlier_best_is_the_one_to_beat(self):
        run = Run("abc")
        run.continue_from(record(a=0.25, b=0.75))
        assert run.best_round == 2
        run.round(5, {"a": 0.25, "b": 0.75})  # the same is not better
        assert run.best_round == 2
        run.round(6, {"a": 0.25, "b": 0.5})
        assert run.announced == [(6, 0.375)] and run.best_round == 6
        run.round(7, {"a": 0.9, "c": 0.9}, classes={"c": ("Mass",)})
        assert run.dropped == []  # as the earlier best would be, for want of a column

    @pytest.mark.parametrize(("sites", "earlier", "losses", "dropped", "best"), [
        ("ab", None, {"a": 9.0}, None, 5),
        ("abc", record(a=0.5, b=0.5, c=0.5), {"a": 0.1, "b": 0.1}, None, 5),
        ("abc", record(a=0.5, b=0.5, c=0.5), {"a": 0.1}, None, 2),
        ("acde", record(a=0.1, b=0.1), {"a": 0.9, "c": 0.9, "d": 0.9}, "only 1 of 3 sites", 5),
        ("ab", record(a=0.1, b=0.1, classes=BOTH), {"a": 0.9, "b": 0.9}, "only 0 of 2 site", 5),
        ("ab", record(a=0.1, metric="focal"), {"a": 0.9}, "its loss is 'focal', and this", 5),
        ("ab", {**record(a=0.1), "classes": {}}, {"a": 0.9}, "it has no columns", 5),
    ], ids=["a fresh run", "one is absent", "too many are absent",
            "too few measured it", "other classes", "another loss",
            "a record without classes"])  # fmt: skip
    def test_it_is_dropped_if_incomparable(self, sites, earlier, losses, dropped, best):
        run = Run(sites)
        run.continue_from(earlier)
        run.round(5, losses)
        assert run.best_round == best
        assert [why.startswith(dropped) for why in run.dropped] == [True] * bool(dropped)

    def test_with_a_new_class_there_is_no_best_model_until_it_has_a_column(self):
        run = Run()
        run.continue_from({**record(a=0.5), "columns": BOTH})  # b was absent
        run.round(5, {"a": 0.5, "b": 0.5}, classes={"b": ("Mass",)})
        assert (run.dropped, run.best_round) == ([], 2)
        run = Run("abc")
        run.continue_from(record(a=0.1, b=0.1))
        losses, new = dict.fromkeys("abc", 0.5), {"c": ("Mass",)}
        for round_ in (5, 6):
            run.round(round_, losses, classes=new, model=global_model({}, {"Edema": COLUMN}))
        assert run.dropped == ["it has no columns for all classes of ['c']"]
        assert run.announced == [] and run.best_round is None
        run.round(7, losses, classes=new)
        assert run.announced == [(7, 0.5)]
