"""The aggregator in front of FLARE's own containers."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.model import ModelLearnable
from nvflare.app_common.aggregators.intime_accumulate_model_aggregator import (
    InTimeAccumulateWeightedAggregator,
)
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.app_common.workflows.fedavg import FedAvg

from flare import Engine, column, context, global_model, result
from surgical_aggregation.aggregation.weighting import SITE_WEIGHTINGS, WeightingError
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.best_model_selector import BestModelSelector
from surgical_aggregation.server.models.global_model import GlobalModel, MergeIntoGlobalModel
from surgical_aggregation.wire import headers
from surgical_aggregation.wire import variables as wire

VARIANCE = "bn/moving_variance"


BODY = {"conv/kernel": np.zeros(2, np.float32), VARIANCE: np.ones(2, np.float32)}
MODEL = global_model(BODY, {"Edema": column(0)}, batch_norm=(VARIANCE,))


def train(value, classes, also=(), **facts):
    """A result whose every number is `value`; `also`: further variables."""
    body = {"conv/kernel": np.full(2, value, np.float32), **dict(also)}
    return result(body, {name: column(value) for name in classes}, **facts)


def give(aggregator, site, sent, model=MODEL, current_round=0):
    """Why a site's result is refused; None when it is taken."""
    fl_ctx = context(site, current_round=current_round, model=model)
    taken = aggregator.accept(sent, fl_ctx)
    refusal = fl_ctx.get_prop(headers.REFUSAL)
    assert taken == (refusal is None)
    return refusal and refusal["reason"]


def aggregate(aggregator, results, model=MODEL, **facts):
    """The DXO over results that are all taken."""
    for site, sent in results:
        assert give(aggregator, site, sent, model, **facts) is None
    return from_shareable(aggregator.aggregate(context(model=model)))


def values(dxo):
    """Body value, and class -> column value."""
    body, columns = wire.split(dxo.data)
    return body["conv/kernel"][0].item(), {c: k[0].item() for c, (k, _) in columns.items()}


SAMPLES = {"body_weighting": "samples", "head_weighting": "samples"}
POSITIVES = {"head_weighting": "positives"}


class TestAggregate:
    def test_weighs_body_and_head_apart(self):
        a = train(0, ["Edema"], positives={"Edema": 3})
        b = train(4, ["Edema"], positives={"Edema": 1})
        dxo = aggregate(SurgicalAggregator(**POSITIVES), [("a", a), ("b", b)])
        assert values(dxo) == (2, {"Edema": 1})

    @pytest.mark.parametrize("weighting", SITE_WEIGHTINGS)
    @pytest.mark.parametrize("moved", [0, 4])
    def test_inventing_classes_or_standing_still_gives_no_more_of_the_body(self, weighting, moved):
        invented = [f"Invented {number}" for number in range(100)]
        results = [("a", train(2, ["Edema"], samples=5)), ("b", train(moved, invented, samples=5))]
        aggregator = SurgicalAggregator(body_weighting=weighting)
        assert values(aggregate(aggregator, results))[0] == (2 + moved) / 2

    def test_body_over_all_sites_and_columns_over_those_that_label_the_class(self):
        aggregator, fl_ctx = SurgicalAggregator(), context(model=MODEL)
        for site, sent in (("a", train(1, ["Edema", "Mass"])), ("b", train(-3, ["Edema"]))):
            give(aggregator, site, sent)
        dxo = from_shareable(aggregator.aggregate(fl_ctx))
        assert values(dxo) == (-1, {"Edema": -1, "Mass": 1})
        assert fl_ctx.get_prop(headers.COLUMN_SIMILARITY) == {"Edema": pytest.approx(-1)}
        assert list(fl_ctx.get_prop(headers.ACCEPTED)) == ["a", "b"]
        aggregator.reset(fl_ctx)
        assert fl_ctx.get_prop(headers.ACCEPTED) is None

    def test_does_not_depend_on_the_order_of_arrival_to_the_last_bit(self):
        model = global_model({"conv/kernel": np.zeros(2)})  # in float64, where the order shows

        def last(site, value):
            columns = {"Edema": (np.full(2, value), np.array([value]))}
            return site, result({"conv/kernel": np.full(2, value)}, columns)

        a, b, c = last("a", 6e4), last("b", 1e-12), last("c", -6e4)
        made = [aggregate(SurgicalAggregator(), order, model) for order in ([a, b, c], [a, c, b])]
        one, other = ({name: v.tobytes() for name, v in dxo.data.items()} for dxo in made)
        assert one == other

    def test_a_column_may_be_as_large_as_the_models_own(self):
        model = global_model(BODY, {"Edema": column(1e6)}, batch_norm=(VARIANCE,))
        sent = result({"conv/kernel": BODY["conv/kernel"]}, {"Edema": column(1e6 + 1)})
        assert give(SurgicalAggregator(), "a", sent, model) is None

    def test_concurrent_results_are_all_taken(self):
        aggregator = SurgicalAggregator()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: give(aggregator, f"site-{i}", train(i, ["Edema"])), range(32)))
        assert values(aggregate(aggregator, [])) == (15.5, {"Edema": 15.5})

    def test_differences_are_added_to_the_model_that_the_round_started_from(self):
        model = global_model({"conv/kernel": np.full(2, 10, np.float32)}, {"Edema": column(20)})
        a = train(1, ["Edema", "Mass"], kind=DataKind.WEIGHT_DIFF)
        b = train(3, ["Edema"], kind=DataKind.WEIGHT_DIFF)
        c = train(14, ["Edema"])  # another site may send whole weights
        dxo = aggregate(SurgicalAggregator(), [("a", a), ("b", b), ("c", c)], model)
        assert dxo.data_kind == DataKind.WEIGHTS
        assert values(dxo) == (pytest.approx(38 / 3), {"Edema": pytest.approx(58 / 3), "Mass": 1})

    @pytest.mark.parametrize("labelled", [["EM", "EM", "EM"], ["EM", "E", "H"]])
    def test_weighted_by_samples_it_is_flares_aggregate_exactly(self, labelled):
        """FLARE's own aggregator over the same per-class variables is an independent oracle."""
        # Whole numbers, and powers of two as the total weight of every variable: no rounding.
        facts = zip("abc", (3, 5, 9), labelled, (1, 3, 4), strict=True)
        results = [(site, train(value, of, samples=n)) for site, value, of, n in facts]
        ours = aggregate(SurgicalAggregator(**SAMPLES), results)
        stock = InTimeAccumulateWeightedAggregator(expected_data_kind=DataKind.WEIGHTS)
        stock.handle_event(EventType.START_RUN, context())
        for site, shareable in results:
            shareable.set_peer_props({ReservedKey.IDENTITY_NAME: site})
            assert stock.accept(shareable, context(site, model=MODEL))
        theirs = from_shareable(stock.aggregate(context(model=MODEL)))
        assert set(ours.data) == set(theirs.data)
        for name, value in theirs.data.items():
            np.testing.assert_array_equal(ours.data[name], value)


def raw(data, kind=DataKind.WEIGHTS):
    shareable = DXO(kind, data=data).to_shareable()
    shareable.add_cookie(AppConstants.CONTRIBUTION_ROUND, 0)
    return shareable


EDEMA = train(9, ["Edema"])
HALF = {**from_shareable(EDEMA).data, "head/Edema/bias": np.float32([1, 2])}
REFUSED = {
    "a second one": ({}, "a", EDEMA, "has already sent a result"),
    "late": ({}, "b", train(9, ["Edema"], current_round=1), "belongs to round 1, but round 0 is"),
    "nothing": ({}, "b", Shareable(), "belongs to round None"),
    "NaN": ({}, "b", train(np.nan, ["Edema"]), "'conv/kernel' has 2 values that are NaN"),
    "malformed": ({}, "b", raw(HALF), "bias of Edema"),
    "malformed differences": ({}, "b", raw(HALF, DataKind.WEIGHT_DIFF), "bias of Edema"),
    "of another kind": ({}, "b", raw({"a": 1}, DataKind.METRICS), "could not be read (WireError"),
    "no differences": ({}, "b", raw({"conv/kernel": 1}, DataKind.WEIGHT_DIFF), "got int"),
    "half a column": ({}, "b", raw({"head/Edema/kernel": np.zeros(2)}), "could not be read"),
    "no names": ({}, "b", raw({3: 4}), "could not be read"),
    "no count of samples": ({"body_weighting": "samples"}, "b", EDEMA, "the number of images"),
    "no positive": (POSITIVES, "b", train(9, ["Edema"], positives={"Edema": 0}), "of ['Edema']"),
    "frozen": ({}, "b", train(9, ["Edema"], {VARIANCE: np.ones(2)}), "must not be sent in this"),
    "the model's spelling": ({}, "b", train(9, ["EDEMA"]), "'EDEMA' is known as 'Edema' in"),
    "the first one's spelling": ({}, "b", train(9, ["hernia"]), "'hernia' is known as 'Hernia'"),
    "too many classes": ({"limits": {"site_classes": 2}}, "b", train(9, "ABC"), "3 classes"),
}


class TestAccept:
    @pytest.mark.parametrize(("arguments", "site", "sent", "why"), REFUSED.values(), ids=REFUSED)
    def test_a_refused_result_leaves_no_trace(self, arguments, site, sent, why):
        aggregator, facts = SurgicalAggregator(**arguments), {"samples": 1}
        first = train(1, ["Edema", "Hernia"], positives={"Edema": 1, "Hernia": 1}, **facts)
        assert give(aggregator, "a", first) is None
        assert why in give(aggregator, site, sent)
        last = train(3, ["Edema"], positives={"Edema": 1}, **facts)
        assert values(aggregate(aggregator, [("c", last)])) == (2, {"Edema": 2, "Hernia": 1})

    def test_a_refusal_fixes_no_spelling_and_the_next_round_goes_by_its_own_model(self):
        aggregator = SurgicalAggregator()
        give(aggregator, "c", train(np.nan, ["mass"]))
        with pytest.raises(WeightingError, match="round 0 needs at least one accepted result; got"):
            aggregate(aggregator, [])
        aggregator.reset(context())
        aggregate(aggregator, [("a", train(1, ["MASS"]))])
        assert give(aggregator, "b", EDEMA) == "round 0 has been averaged already"
        aggregator.reset(context())
        sent = train(5, ["Mass"], current_round=1)
        model = global_model({"conv/kernel": BODY["conv/kernel"]}, {"Mass": column(0)})
        dxo = aggregate(aggregator, [("a", sent)], model, current_round=1)
        assert values(dxo) == (5, {"Mass": 5})

    def test_a_refusal_says_site_and_round_and_goes_no_further_than_the_server(self):
        engine = Engine()
        fl_ctx = context("b", current_round=4, model=MODEL, engine=engine, claims="north")
        sent = train(1, ["edema"], current_round=4)
        assert not SurgicalAggregator().accept(sent, fl_ctx)
        assert engine.events == [headers.CONTRIBUTION_REFUSED]
        refusal = fl_ctx.get_prop(headers.REFUSAL)
        assert (refusal["site"], refusal["round"]) == ("b", 4) and "'Edema'" in refusal["reason"]
        public = [of.get_all_public_props() for of in (fl_ctx, fl_ctx.get_peer_context())]
        assert "Edema" not in f"{public} {sent}"

    @pytest.mark.parametrize(("strategy", "variance", "why"), [
        ("fedbn", None, None), ("fedavg", None, "are missing"), ("fedavg", -1, None),
        ("fedavg", -1.5, "below 0"),
    ])  # fmt: skip
    def test_batch_normalisation_comes_only_where_it_is_averaged(self, strategy, variance, why):
        """As differences from 1."""
        also = {} if variance is None else {VARIANCE: np.full(2, variance, np.float32)}
        sent = train(0, ["Edema"], also, kind=DataKind.WEIGHT_DIFF)
        reason = give(SurgicalAggregator(strategy), "a", sent)
        assert reason is None if why is None else why in reason

    def test_where_heads_are_personal_columns_are_refused_and_the_aggregate_has_none(self):
        aggregator = SurgicalAggregator(personal_head=True)
        assert "it has columns of 'Edema', but in this run" in give(aggregator, "a", EDEMA)
        dense = train(1, [], {"head/kernel": np.zeros((2, 1))})
        assert "or keep it (personal_head)" in give(aggregator, "a", dense)
        dxo = aggregate(aggregator, [("a", train(1, []))])
        assert values(dxo) == (1, {})


@pytest.mark.parametrize(("arguments", "why"), [
    ({"strategy": "fedprox"}, "got 'fedprox'"),
    ({"body_weighting": "classes"}, r"body_weighting must be .*mean.*samples.*got 'classes'"),
    ({"head_weighting": "median"}, "head_weighting must .* got 'median'"),
    ({"limits": {"classes": 1}}, "limits are class_name_bytes"),
])  # fmt: skip
def test_an_unknown_setting_is_refused(arguments, why):
    with pytest.raises(ValueError, match=why):
        SurgicalAggregator(**arguments)


@pytest.mark.parametrize(("strategy", "mean", "ends"), [
    ("fedbn+", 0, True), ("fedavg", 0, False), ("fedbn+", 0.1, False),
])  # fmt: skip
def test_batch_normalisation_of_random_weights_is_not_frozen(panics, strategy, mean, ends):
    aggregator = SurgicalAggregator(strategy)
    nothing = context(props={AppConstants.GLOBAL_MODEL: ModelLearnable()})
    aggregator.handle_event(AppEventType.INITIAL_MODEL_LOADED, nothing)
    assert panics == []  # the persistor has ended the run
    statistics = {"bn/moving_mean": np.full(2, mean, np.float32), VARIANCE: BODY[VARIANCE]}
    loaded = context(model=global_model({**BODY, **statistics}, batch_norm=statistics))
    aggregator.handle_event(AppEventType.INITIAL_MODEL_LOADED, loaded)
    assert [reason[:40] for reason in panics] == ["strategy 'fedbn+' freezes the initial bo"] * ends


class TestFedAvg:
    """The door for FLARE's FedAvg, which gives no context with a result."""

    def give(self, aggregator, site, sent):
        model = FLModelUtils.from_shareable(sent)
        model.meta["client_name"] = site
        aggregator.accept_model(model)

    def test_a_refused_result_raises_for_its_site_alone_and_is_announced(self):
        aggregator, fl_ctx = SurgicalAggregator(), context(model=MODEL)
        aggregator.handle_event(EventType.START_RUN, fl_ctx)
        aggregator.reset_stats()
        self.give(aggregator, "a", train(1, ["Edema"]))
        with pytest.raises(ValueError, match="'conv/kernel' has 2 values that are NaN"):
            self.give(aggregator, "b", train(np.nan, ["Edema"]))
        assert fl_ctx.get_prop(headers.REFUSAL)["site"] == "b"
        with pytest.raises(ValueError, match="already sent a result"):
            self.give(aggregator, "a", train(1, ["Edema"]))
        made = aggregator.aggregate_model()
        assert made.params["conv/kernel"].tolist() == [1, 1] and made.meta["round"] == 1
        assert GlobalModel.current(fl_ctx).manifest == made.meta
        aggregator.reset_stats()
        with pytest.raises(WeightingError, match="needs at least one accepted result"):
            aggregator.aggregate_model()

    @pytest.mark.parametrize(("part", "why"), [
        (SurgicalAggregator(), "task 'train' needs CheckResult and SelectHead among"),
        (MergeIntoGlobalModel("fedavgm"), "Model: FedAvg does not support optimizer 'fedavgm'"),
        (MergeIntoGlobalModel(average_decay=0.5), "FedAvg does not support average_decay 0.5"),
        (BestModelSelector(), "FedAvg does not support the choice of the best model"),
    ], ids=["no filters", "optimizer", "average", "best model"])  # fmt: skip
    def test_what_cannot_be_had_under_it_ends_the_run_at_its_start(self, panics, part, why):
        fedavg, none = SimpleNamespace(controller=FedAvg(num_clients=2)), {}
        filters = {"task_data_filters": none, "task_result_filters": none}
        runner = SimpleNamespace(config=SimpleNamespace(workflows=[fedavg], **filters))
        part.handle_event(EventType.START_RUN, context())
        assert panics == []
        part.handle_event(EventType.START_RUN, context(props={FLContextKey.RUNNER: runner}))
        assert why in panics.pop()
