import math

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context, global_model, result
from surgical_aggregation.server.models.best_model import (
    BEST,
    BEST_DROPPED,
    DROPPED,
    BestModelSelector,
)
from surgical_aggregation.server.models.global_model import BEST_ROUND, GlobalModel
from surgical_aggregation.server.workflows.heartbeat import GONE

COLUMN = (np.zeros(2, np.float32), np.zeros(1, np.float32))
MODEL = global_model({}, {"Edema": COLUMN, "Mass": COLUMN})
EMPTY = global_model({})


class Run:
    """A selector and what it announced: [(round, loss), ...]."""

    def __init__(self, sites=("a", "b"), **args):
        self.selector = BestModelSelector(**args)
        self.model = global_model(MODEL.body, MODEL.columns)
        self.sites = sites
        self.announced = []
        self.records = []
        self.dropped = []
        self.best_round = "never said"
        self.gone = {}

    def fire(self, event_type, current_round, site=None, classes=("Edema",), model=None, **props):
        run = self

        class Listener(Engine):
            def fire_event(self, event_type, fl_ctx):
                if event_type == AppEventType.GLOBAL_BEST_MODEL_AVAILABLE:
                    best = fl_ctx.get_prop(BEST)
                    run.announced.append((best["round"], best["value"]))
                    run.records.append(best)
                elif event_type == BEST_DROPPED:
                    run.dropped.append(fl_ctx.get_prop(DROPPED))

        engine = Listener()
        engine.sites = self.sites
        fl_ctx = context(site, classes, current_round, model or self.model, engine)
        for key, value in props.items():
            fl_ctx.set_prop(getattr(AppConstants, key), value, private=True, sticky=False)
        fl_ctx.set_prop(
            FLContextKey.WORKFLOW,
            "validate_final" if event_type in FINAL else "train",
            private=True,
            sticky=False,
        )
        fl_ctx.set_prop(GONE, self.gone, private=True, sticky=False)
        self.selector.handle_event(event_type, fl_ctx)
        self.best_round = fl_ctx.get_prop(BEST_ROUND, self.best_round)

    def take_over(self, record):
        """Start from a checkpoint of an earlier run, whose best model has this record."""
        fl_ctx = context(engine=Engine())
        fl_ctx.set_prop(BEST, record, private=True, sticky=False)
        self.selector.handle_event(AppEventType.INITIAL_MODEL_LOADED, fl_ctx)
        self.best_round = fl_ctx.get_prop(BEST_ROUND)

    def round(self, current_round, losses, accepted=True, classes=None, **facts):
        """`losses`: site -> loss; `classes`: of all sites, or site -> classes; default Edema."""
        self.fire(AppEventType.ROUND_STARTED, current_round)
        for site, loss in losses.items():
            shareable = result({}, {"Edema": COLUMN}, metrics={"bce": loss})
            of = classes.get(site) if isinstance(classes, dict) else classes
            self.fire(
                AppEventType.AFTER_CONTRIBUTION_ACCEPT, current_round, site,
                ("Edema",) if of is None else of,
                TRAINING_RESULT=shareable, AGGREGATION_ACCEPTED=accepted, **facts,
            )  # fmt: skip
        self.fire(AppEventType.BEFORE_AGGREGATION, current_round, **facts)

    def final(self, last_round, results, **facts):
        """After the last round; of a job that made none of its own, no round is current."""
        made = GlobalModel(MODEL.body, MODEL.columns, {"round": last_round + 1, **facts})
        self.fire(EventType.START_WORKFLOW, None, model=made)
        for site, shareable in results.items():
            self.fire(
                AppEventType.VALIDATION_RESULT_RECEIVED, None, site, model=made,
                VALIDATION_RESULT=shareable,
            )  # fmt: skip
        self.fire(EventType.END_WORKFLOW, None, model=made)


FINAL = (
    EventType.START_WORKFLOW,
    AppEventType.VALIDATION_RESULT_RECEIVED,
    EventType.END_WORKFLOW,
)


def metrics(loss):
    return DXO(DataKind.METRICS, data={"bce": loss}).to_shareable()


def test_smallest_mean_over_sites_wins():
    run = Run()
    run.round(0, {"a": 0.5, "b": 0.7})
    run.round(1, {"a": 0.2, "b": 0.8})
    run.round(2, {"a": 0.4, "b": 0.9})
    assert run.announced == [(0, 0.6), (1, 0.5)]


def test_round_0_counts_when_its_model_has_all_columns():
    run = Run()
    run.round(0, {"a": 0.1})
    run.round(1, {"a": 0.2})
    assert run.announced == [(0, 0.1)]


def test_a_model_without_columns_is_no_candidate():
    run = Run()
    run.round(0, {"a": 0.1}, model=EMPTY)
    run.round(1, {"a": 0.2})
    assert run.announced == [(1, 0.2)]


def test_final_model_counts():
    run = Run()
    run.round(0, {"a": 0.5, "b": 0.5})
    run.final(0, {"a": metrics(0.25), "b": metrics(0.25)})
    assert run.announced == [(0, 0.5), (1, 0.25)]


def test_a_site_whose_results_were_all_refused_has_no_say_about_the_final_model():
    run = Run()
    run.round(0, {"a": 0.5})
    run.final(0, {"a": metrics(0.25), "b": metrics(0.125)})
    assert run.announced == [(0, 0.5), (1, 0.25)]


def test_a_site_that_measured_the_best_model_has_one_though_it_taught_nothing_since():
    run = Run()
    run.take_over(record(a=0.25, b=0.25))
    run.round(5, {"a": 0.5})
    run.final(5, {"a": metrics(0.125), "b": metrics(0.25)})
    assert run.announced == [(6, 0.1875)]


def test_where_there_is_no_best_model_yet_who_taught_in_the_continued_run_has_a_say():
    run = Run()
    run.take_over(None)
    taught = {"Edema": {"sites": ["a"], "last_round": 0}}
    run.final(0, {"a": metrics(0.25), "b": metrics(0.125)}, classes=taught)
    assert run.announced == [(1, 0.25)]


def test_a_job_without_a_round_of_its_own_judges_the_final_model_too():
    run = Run()
    run.take_over(record(a=0.25, b=0.25))
    run.final(7, {"a": metrics(0.125), "b": metrics(0.125)})
    assert run.announced == [(8, 0.125)]


@pytest.mark.parametrize(("failed", "announced"), [("c", [0, 1]), ("bc", [0])])
def test_final_model_that_too_many_sites_could_not_measure_is_no_candidate(failed, announced):
    run = Run()
    run.round(0, {"a": 0.5, "b": 0.5, "c": 0.5})
    run.final(0, {site: metrics(0.1) for site in "abc" if site not in failed})
    assert [round_ for round_, _ in run.announced] == announced


def test_a_loss_over_fewer_sites_does_not_win():
    run = Run()
    run.round(0, {"a": 0.2, "b": 0.8})
    run.round(1, {"a": 0.2})
    assert run.announced == [(0, 0.5)]


def test_absent_sites_do_not_keep_a_better_model_from_being_the_best():
    run = Run()
    run.round(0, {"a": 0.3, "b": 0.6, "c": 0.9})
    run.round(1, {"b": 0.5, "c": 0.8})  # better at both, and its mean is larger
    run.round(2, {"a": 0.1, "c": 0.85})  # a did not measure the best one
    assert [round_ for round_, _ in run.announced] == [0, 1]
    assert run.announced[1][1] == pytest.approx(0.65)


def test_a_model_that_too_few_sites_measured_is_none():
    run = Run(min_share=0.75)
    run.round(0, {"a": 0.5, "b": 0.5, "c": 0.5})
    run.round(1, {"a": 0.1, "b": 0.1})
    assert run.best_round == 0
    assert run.model.manifest["not_compared"] == 1


@pytest.mark.parametrize("share", [0, -0.5, 1.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="min_share must be above 0 and at most 1"):
        BestModelSelector(min_share=share)


def test_the_manifest_counts_rounds_since_the_best_model_that_could_not_be_compared():
    run = Run()
    counts = []
    everybody = {"a": 0.5, "b": 0.5, "c": 0.5}
    for losses in (everybody, {"a": 0.1}, everybody, {}, {"a": 0.4, "b": 0.4}, everybody):
        run.round(len(counts), losses)
        counts.append(run.model.manifest.get("not_compared", 0))
    assert counts == [0, 1, 1, 2, 0, 0]


def test_before_there_is_a_best_model_no_round_is_counted():
    run = Run()
    empty = global_model({})
    run.round(0, {"a": 0.1}, model=empty)
    assert "not_compared" not in empty.manifest


def test_a_site_that_comes_in_later_has_a_say_from_then_on():
    run = Run()
    run.round(0, {"a": 0.2})
    run.round(1, {"a": 0.1, "b": 0.5})
    run.round(2, {"a": 0.1, "b": 0.25})
    assert run.announced == [(0, 0.2), (1, 0.3), (2, 0.175)]


def test_when_a_class_comes_in_the_first_model_with_its_column_is_the_best_without_a_comparison():
    run = Run()
    both = {"b": ("Edema", "Mass")}
    without = global_model({}, {"Edema": COLUMN})
    run.round(0, {"a": 0.2}, model=without)
    run.round(1, {"a": 0.1, "b": 0.1}, classes=both, model=without)
    assert run.announced == [(0, 0.2)]
    run.round(2, {"a": 0.9})  # its model has the column, and the class's only holder is absent
    assert run.announced == [(0, 0.2), (2, 0.9)]


def test_a_site_whose_losses_are_never_finite_blocks_nothing():
    run = Run()
    run.round(0, {"a": 0.5, "b": math.nan})
    run.round(1, {"a": 0.25, "b": math.nan})
    assert run.announced == [(0, 0.5), (1, 0.25)]


def test_sites_that_left_for_good_are_not_waited_for():
    run = Run()
    run.round(0, dict.fromkeys("abc", 0.5))
    run.round(1, {"a": 0.4})  # of three sites one
    assert run.best_round == 0
    run.gone = {"b": "no sign of life", "c": "no sign of life"}
    run.round(2, {"a": 0.3})
    assert run.best_round == 2


def test_a_late_answer_does_not_change_the_record():
    run = Run()
    run.round(0, {"a": 0.5})
    late = result({}, {"Edema": COLUMN}, metrics={"bce": 0.9})
    run.fire(
        AppEventType.AFTER_CONTRIBUTION_ACCEPT, 0, "b",
        TRAINING_RESULT=late, AGGREGATION_ACCEPTED=True,
    )  # fmt: skip
    run.round(1, {"a": 0.5, "b": 0.1})  # over a alone: no better
    assert run.announced == [(0, 0.5)]


def test_refused_results_do_not_count():
    run = Run()
    run.round(0, {"a": 0.1}, accepted=False)
    assert run.announced == []


def test_what_comes_in_place_of_a_loss_is_one_line_of_the_log(caplog):
    run = Run()
    run.round(0, {"a": np.zeros((2, 2)), "b": "x" * 5000})
    said = [record.getMessage() for record in caplog.records if "usable" in record.getMessage()]
    assert len(said) == 2
    assert all(text.isprintable() and len(text) < 2000 for text in said)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -0.1, "0.1", None])
def test_a_loss_that_is_no_number_does_not_count(loss):
    run = Run()
    run.round(0, {"a": loss})
    assert run.announced == []


def test_losses_of_a_round_do_not_reach_the_next():
    run = Run()
    run.fire(AppEventType.ROUND_STARTED, 0)
    shareable = result({}, {"Edema": COLUMN}, metrics={"bce": 0.9})
    run.fire(
        AppEventType.AFTER_CONTRIBUTION_ACCEPT, 0, "b",
        TRAINING_RESULT=shareable, AGGREGATION_ACCEPTED=True,
    )  # fmt: skip
    run.round(1, {"a": 0.1})
    assert run.announced == [(1, 0.1)]


def test_the_record_says_who_measured_it_with_which_classes_and_what_the_model_has():
    run = Run()
    run.round(0, {"b": 0.5, "a": 0.25}, classes=("Mass", "Edema"))
    assert run.records == [
        {
            "round": 0,
            "metric": "bce",
            "value": 0.375,
            "sites": {"a": 0.25, "b": 0.5},
            "classes": {"a": ["Edema", "Mass"], "b": ["Edema", "Mass"]},
            "columns": ["Edema", "Mass"],
        }
    ]


def test_where_sites_declare_no_classes_every_model_is_a_candidate():
    run = Run()
    run.round(0, {"a": 0.5}, classes=(), model=EMPTY)
    assert run.announced == [(0, 0.5)]


def test_everybody_is_told_the_round_of_the_best_model():
    run = Run()
    run.round(0, {"a": 0.1}, model=EMPTY)
    assert run.best_round == "never said"
    run.round(1, {"a": 0.3})
    run.round(2, {"a": 0.4})
    assert run.best_round == 1
    run.round(3, {"a": 0.2})
    assert run.best_round == 3


def record(round_=2, *, metric="bce", classes=("Edema",), **losses):
    return {
        "round": round_,
        "metric": metric,
        "value": sum(losses.values()) / len(losses),
        "sites": losses,
        "classes": {site: list(classes) for site in losses},
    }


class TestContinued:
    def test_the_earlier_best_is_the_one_to_beat(self):
        run = Run()
        run.take_over(record(a=0.25, b=0.75))
        assert run.best_round == 2
        run.round(5, {"a": 0.25, "b": 0.75})  # the same is not better
        assert run.best_round == 2
        run.round(6, {"a": 0.25, "b": 0.5})
        assert run.announced == [(6, 0.375)] and run.best_round == 6
        assert run.dropped == []

    def test_a_fresh_run_has_nothing_to_beat(self):
        run = Run()
        run.take_over(None)
        assert run.best_round is None
        run.round(0, {"a": 9.0})
        assert run.announced == [(0, 9.0)]

    @pytest.mark.parametrize(("absent", "best"), [("c", 5), ("bc", 2)])
    def test_too_many_absent_sites_are_waited_for(self, absent, best):
        run = Run("abc")
        run.take_over(record(a=0.5, b=0.5, c=0.5))
        run.round(5, {site: 0.1 for site in "abc" if site not in absent})
        assert (run.dropped, run.best_round) == ([], best)

    @pytest.mark.parametrize(
        ("sites", "losses"),
        [("a", {"a": 0.25}), ("abc", {"a": 0.25, "b": 0.5, "c": 9.0})],
        ids=["one is gone", "one is new"],
    )
    def test_with_other_sites_it_is_compared_over_those_that_measured_both(self, sites, losses):
        run = Run(sites)
        run.take_over(record(a=0.25, b=0.5))
        run.round(5, losses)
        assert (run.dropped, run.best_round) == ([], 2)
        run.round(6, {**losses, "a": 0.125})
        assert (run.dropped, run.best_round) == ([], 6)

    def test_it_is_dropped_where_too_few_of_this_runs_sites_measured_it(self):
        run = Run("acde")
        run.take_over(record(a=0.1, b=0.1))
        run.round(5, {"a": 0.9, "c": 0.9, "d": 0.9})
        why = "only 1 of 3 sites measured it with their present classes, and 50% must"
        assert run.dropped == [why]
        assert run.announced == [(5, pytest.approx(0.9))] and run.best_round == 5

    def test_a_site_with_other_classes_cannot_be_compared(self):
        run = Run("abc")
        run.take_over(record(a=0.5, b=0.5, c=0.5, classes=["Edema", "Mass"]))
        both = ("Edema", "Mass")
        run.round(5, {"a": 0.01, "b": 0.5, "c": 0.5}, classes={"b": both, "c": both})
        assert (run.dropped, run.best_round) == ([], 2)
        run.round(6, {"a": 9.0, "b": 0.4, "c": 0.5}, classes={"b": both, "c": both})
        assert run.best_round == 6

    def test_other_classes_at_most_sites_drop_it(self):
        run = Run()
        run.take_over(record(a=0.1, b=0.1, classes=["Edema", "Mass"]))
        run.round(5, {"a": 0.9, "b": 0.9})
        assert run.dropped[0].startswith("only 0 of 2 sites measured it with their present classes")
        assert run.announced == [(5, 0.9)]

    def test_another_loss_cannot_be_compared(self):
        run = Run()
        run.take_over(record(a=0.1, metric="focal"))
        run.round(5, {"a": 0.9})
        assert run.dropped == ["its loss is 'focal', and this run's is 'bce'"]

    def test_with_a_new_class_there_is_no_best_model_until_it_has_a_column(self):
        run = Run("abc")
        run.take_over(record(a=0.1, b=0.1))
        losses, new = {"a": 0.9, "b": 0.9, "c": 0.9}, {"c": ("Mass",)}
        run.round(5, losses, classes=new, model=global_model({}, {"Edema": COLUMN}))
        assert run.dropped == ["it has no columns for all classes of ['c']"]
        assert run.announced == [] and run.best_round is None
        run.round(6, losses, classes=new)
        assert run.announced == [(6, pytest.approx(0.9))]

    def test_a_class_whose_holder_was_absent_when_it_was_measured_drops_nothing(self):
        run = Run()
        run.take_over({**record(a=0.5), "columns": ["Edema", "Mass"]})
        run.round(5, {"a": 0.5, "b": 0.5}, classes={"b": ("Mass",)})
        assert (run.dropped, run.best_round) == ([], 2)

    @pytest.mark.parametrize("classes", [("Edema",), ()])
    def test_a_record_that_does_not_say_the_classes_is_dropped(self, classes):
        run = Run()
        run.take_over({**record(a=0.1, b=0.1), "classes": {}})
        run.round(5, {"a": 0.9, "b": 0.9}, classes=classes)
        assert len(run.dropped) == 1 and run.best_round == 5

    def test_sites_that_are_gone_do_not_count_where_none_declares_classes(self):
        run = Run("cd")
        run.take_over(record(a=0.1, b=0.1, classes=()))
        run.round(5, {"c": 0.9, "d": 0.9}, classes=())
        assert len(run.dropped) == 1 and run.best_round == 5

    def test_what_is_this_runs_own_is_not_dropped_any_more(self):
        run = Run("abc")
        run.take_over(record(a=0.5, b=0.5, c=0.5))
        run.round(5, {"a": 0.1, "b": 0.1, "c": 0.1})
        run.sites = ("a",)
        run.round(6, {"a": 0.05})
        assert run.dropped == [] and run.best_round == 5

    def test_who_taught_in_the_continued_run_has_a_say_though_it_did_not_measure_the_best(self):
        run = Run()
        run.take_over(record(a=0.25))
        taught = {"Edema": {"sites": ["a", "b"], "last_round": 7}}
        run.final(7, {"a": metrics(0.125), "b": metrics(0.375)}, classes=taught)
        assert run.announced == [(8, 0.25)]

    def test_the_final_model_is_compared_with_it_too(self):
        run = Run()
        run.take_over(record(a=0.25, b=0.25))
        run.round(5, {"a": 0.5, "b": 0.5})
        run.final(5, {"a": metrics(0.125), "b": metrics(0.125)})
        assert run.announced == [(6, 0.125)]
