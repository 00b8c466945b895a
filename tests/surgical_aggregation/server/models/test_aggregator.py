"""The aggregator in front of FLARE's own containers; rules 1 to 3 of the design."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.model import ModelLearnable
from nvflare.app_common.aggregators.intime_accumulate_model_aggregator import (
    InTimeAccumulateWeightedAggregator,
)
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context, global_model, result
from surgical_aggregation.aggregation.size_limits import LimitError
from surgical_aggregation.aggregation.strategy import StrategyError
from surgical_aggregation.aggregation.weighting import WeightingError
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.wire import headers
from surgical_aggregation.wire import variables as wire

MODEL = global_model({"conv/kernel": np.zeros(2, np.float32)})


def column(value):
    return (np.full(2, value, np.float32), np.float32([-value]))


def train(value, classes, **facts):
    """A result whose every number is `value`."""
    body = {"conv/kernel": np.full(2, value, np.float32)}
    return result(body, {name: column(value) for name in classes}, **facts)


def cookie(shareable):
    shareable.add_cookie(AppConstants.CONTRIBUTION_ROUND, 0)
    return shareable


def run(aggregator, results, current_round=0, model=MODEL):
    """Accept results in the order given; return what was accepted and the aggregate's DXO."""
    accepted = [
        aggregator.accept(shareable, context(site, current_round=current_round, model=model))
        for site, shareable in results
    ]
    aggregate = aggregator.aggregate(context(current_round=current_round, model=model))
    return accepted, from_shareable(aggregate)


def values(dxo):
    """Body value, and class -> column value."""
    body, columns = wire.split(dxo.data)
    return body["conv/kernel"][0].item(), {c: k[0].item() for c, (k, _) in columns.items()}


def refusal(aggregator, sent, site="a", model=MODEL):
    """Why a result is refused; None when it is taken."""
    fl_ctx = context(site, model=model)
    taken = aggregator.accept(sent, fl_ctx)
    told = fl_ctx.get_prop(headers.REFUSAL)
    assert taken == (told is None)
    return told and told["reason"]


SAMPLES = {"body_weighting": "samples", "head_weighting": "samples"}


class TestAggregate:
    @pytest.mark.parametrize(
        ("arguments", "a", "b", "expected"),
        [
            (SAMPLES, {"samples": 1}, {"samples": 3}, (3, 3)),
            (
                {"head_weighting": "positives"},
                {"samples": 1, "positives": {"Edema": 3}},
                {"samples": 9, "positives": {"Edema": 1}},
                (2, 1),
            ),
        ],
        ids=["by samples", "body and head apart"],
    )
    def test_weighs_0_and_4(self, arguments, a, b, expected):
        results = [("a", train(0, ["Edema"], **a)), ("b", train(4, ["Edema"], **b))]
        _, dxo = run(SurgicalAggregator(**arguments), results)
        assert values(dxo) == (expected[0], {"Edema": expected[1]})

    def test_body_over_all_sites_and_columns_over_those_that_label_the_class(self):
        aggregator, fl_ctx = SurgicalAggregator(), context(model=MODEL)
        for site, sent in (("a", train(1, ["Edema", "Mass"])), ("b", train(-3, ["Edema"]))):
            aggregator.accept(sent, context(site, model=MODEL))
        dxo = from_shareable(aggregator.aggregate(fl_ctx))
        assert values(dxo) == (-1, {"Edema": -1, "Mass": 1})
        assert dxo.meta[headers.TRAINED_BY] == {"Edema": ["a", "b"], "Mass": ["a"]}
        assert fl_ctx.get_prop(headers.COLUMN_SIMILARITY) == {"Edema": pytest.approx(-1)}
        assert list(fl_ctx.get_prop(headers.ACCEPTED)) == ["a", "b"]
        aggregator.reset(fl_ctx)
        assert fl_ctx.get_prop(headers.ACCEPTED) is None

    def test_does_not_depend_on_the_order_of_arrival_to_the_last_bit(self):
        def site(name, value):  # in float64, where the order of a sum shows
            columns = {"Edema": (np.full(2, value), np.array([value]))}
            return name, result({"conv/kernel": np.full(2, value)}, columns)

        model = global_model({"conv/kernel": np.zeros(2)})
        results = [site("a", 1e16), site("b", 1.0), site("c", -1e16)]
        _, forwards = run(SurgicalAggregator(), results, model=model)
        shuffled = [results[0], results[2], results[1]]
        _, backwards = run(SurgicalAggregator(), shuffled, model=model)
        for name, value in forwards.data.items():
            assert value.tobytes() == backwards.data[name].tobytes()

    def test_concurrent_results_are_all_taken(self):
        aggregator = SurgicalAggregator()
        results = [(f"site-{i}", train(i, ["Edema"])) for i in range(32)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda r: aggregator.accept(r[1], context(r[0], model=MODEL)), results))
        dxo = from_shareable(aggregator.aggregate(context(model=MODEL)))
        assert values(dxo) == (15.5, {"Edema": 15.5})

    def test_raises_when_nothing_was_accepted_and_refuses_what_comes_later(self):
        aggregator = SurgicalAggregator()
        with pytest.raises(WeightingError, match=r"round 0 needs .* one site at least; got none"):
            run(aggregator, [("b", train(np.nan, ["Edema"]))])
        assert refusal(aggregator, train(1, ["Edema"])) == "round 0 has been averaged already"


def test_differences_are_added_to_the_model_that_the_round_started_from():
    """Another site may send whole weights."""
    model = global_model({"conv/kernel": np.full(2, 10, np.float32)}, {"Edema": column(20)})
    results = [
        ("a", train(1, ["Edema", "Mass"], kind=DataKind.WEIGHT_DIFF)),
        ("b", train(3, ["Edema"], kind=DataKind.WEIGHT_DIFF)),
        ("c", train(14, ["Edema"])),
    ]
    accepted, dxo = run(SurgicalAggregator(), results, model=model)
    assert accepted == [True, True, True] and dxo.data_kind == DataKind.WEIGHTS
    assert values(dxo) == (pytest.approx(38 / 3), {"Edema": pytest.approx(58 / 3), "Mass": 1})


class TestStrategy:
    model = global_model(
        {"conv/kernel": np.zeros(2, np.float32), "bn/moving_variance": np.ones(2, np.float32)},
        batch_norm=("bn/moving_variance",),
    )

    def sent(self, variance=None, columns=("Edema",)):
        body = {"conv/kernel": np.zeros(2, np.float32)}
        if variance is not None:
            body["bn/moving_variance"] = np.full(2, variance, np.float32)
        return result(body, {name: column(1) for name in columns}, kind=DataKind.WEIGHT_DIFF)

    @pytest.mark.parametrize(
        ("strategy", "variance", "reason"),
        [
            ("fedbn", None, None),
            ("fedbn+", 0, "not among those that sites send"),
            ("fedavg", None, "are missing"),
            ("fedavg", -1, None),
            ("fedavg", -1.5, "below 0"),
        ],
    )
    def test_batch_normalisation_comes_only_where_it_is_averaged(self, strategy, variance, reason):
        """As differences from 1."""
        said = refusal(SurgicalAggregator(strategy), self.sent(variance), model=self.model)
        assert said is None if reason is None else reason in said

    def test_a_personal_head_stays_at_the_site(self):
        aggregator = SurgicalAggregator(personal_head=True)
        assert "columns of 'Edema' came" in refusal(aggregator, self.sent(), model=self.model)
        unlabelled = from_shareable(self.sent(columns=()))
        unlabelled.data["head/kernel"] = np.zeros((2, 1), np.float32)
        sent = cookie(unlabelled.to_shareable())
        assert "or keep it (personal_head)" in refusal(aggregator, sent, model=self.model)
        _, dxo = run(aggregator, [(n, self.sent(columns=())) for n in "ab"], model=self.model)
        assert list(dxo.data) == ["conv/kernel"] and dxo.meta[headers.TRAINED_BY] == {}


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        ({"strategy": "fedprox"}, StrategyError, "got 'fedprox'"),
        ({"body_weighting": "median"}, WeightingError, "body_weighting must .* got 'median'"),
        ({"head_weighting": "median"}, WeightingError, "head_weighting must .* got 'median'"),
        ({"limits": {"classes": 1}}, LimitError, "limits are class_name_bytes"),
    ],
)
def test_an_unknown_setting_is_refused(arguments, error, reason):
    with pytest.raises(error, match=reason):
        SurgicalAggregator(**arguments)


class TestOneClassOneSpelling:
    """Over sites and rounds: the global model's, or else that of the first result of a round."""

    model = global_model(MODEL.body, {"Edema": column(0)})

    def test_is_the_global_models_or_of_a_new_class_the_first_accepted_results(self):
        aggregator = SurgicalAggregator()
        said = refusal(aggregator, train(1, ["EDEMA", "Hernia"]), model=self.model)
        assert "class 'EDEMA' is known as 'Edema' in this run" in said
        refusal(aggregator, train(np.nan, ["mass"]), "c", self.model)  # which fixes no spelling
        assert refusal(aggregator, train(1, ["Mass"]), "a", self.model) is None
        said = refusal(aggregator, train(9, ["Edema", "mass"]), "b", self.model)
        assert "class 'mass' is known as 'Mass' in this run" in said
        dxo = from_shareable(aggregator.aggregate(context(model=self.model)))
        assert values(dxo) == (1, {"Mass": 1})

    def test_the_next_round_goes_by_its_own_global_model(self):
        aggregator = SurgicalAggregator()
        run(aggregator, [("a", train(1, ["mass"]))], model=self.model)
        aggregator.reset(context())
        model = global_model(MODEL.body, {"Mass": column(0)})
        accepted, dxo = run(aggregator, [("a", train(5, ["Mass"], current_round=1))], 1, model)
        assert accepted == [True] and values(dxo) == (5, {"Mass": 5})

    def test_the_reason_goes_no_further_than_the_server(self):
        aggregator, fl_ctx = SurgicalAggregator(), context("b", model=self.model)
        assert aggregator.accept(train(1, ["Mass"]), context("a", model=self.model))
        sent = train(9, ["mass"])
        assert not aggregator.accept(sent, fl_ctx)
        assert "Mass" not in str(fl_ctx.get_all_public_props()) + str(sent)
        assert "Mass" not in str(fl_ctx.get_peer_context().get_all_public_props())


@pytest.mark.parametrize(
    ("limits", "classes", "accepted"),
    [
        ({"site_classes": 1}, [["Edema"], ["Edema", "Mass"]], [True, False]),
        ({"model_classes": 1}, [["Edema"], ["Mass"], ["Edema"]], [True, False, True]),
        ({"result_bytes": 50}, [["Edema"], ["Edema", "Mass"]], [True, False]),
    ],
)
def test_limits_hold_for_every_result_and_for_a_round(limits, classes, accepted):
    results = [(f"site-{k}", train(1, names)) for k, names in enumerate(classes)]
    assert run(SurgicalAggregator(limits=limits), results)[0] == accepted


class TestAgainstFlare:
    """FLARE's own aggregator over the same per-class variables is an independent oracle."""

    @pytest.mark.parametrize(
        "labelled", [(["Edema", "Mass"],) * 3, (["Edema", "Mass"], ["Edema"], ["Hernia"])]
    )
    def test_weighted_by_samples_it_is_flares_aggregate_exactly(self, labelled):
        # Whole numbers, and powers of two as the total weight of every variable: no rounding.
        facts = [(3, 1), (5, 3), (9, 4)]
        results = [
            (f"site-{i}", train(value, classes, samples=samples))
            for i, ((value, samples), classes) in enumerate(zip(facts, labelled, strict=True))
        ]
        _, ours = run(SurgicalAggregator(**SAMPLES), results)
        stock = InTimeAccumulateWeightedAggregator(expected_data_kind=DataKind.WEIGHTS)
        stock.handle_event(EventType.START_RUN, context())
        for site, shareable in results:
            shareable.set_peer_props({ReservedKey.IDENTITY_NAME: site})
            assert stock.accept(shareable, context(site, model=MODEL))
        theirs = from_shareable(stock.aggregate(context(model=MODEL)))
        assert set(ours.data) == set(theirs.data)
        for name, value in theirs.data.items():
            np.testing.assert_array_equal(ours.data[name], value)


class TestAccept:
    def malformed(kind):
        sent = from_shareable(train(9, ["Edema", "Mass"], current_round=2, kind=kind))
        sent.data["head/Mass/bias"] = np.float32([1, 2])
        shareable = sent.to_shareable()
        shareable.add_cookie(AppConstants.CONTRIBUTION_ROUND, 2)
        return shareable

    @pytest.mark.parametrize(
        ("site", "refused"),
        [
            ("a", train(9, ["Edema"], current_round=2)),
            ("b", train(9, ["Edema"], current_round=1)),
            ("b", train(np.nan, ["Edema", "Mass"], current_round=2)),
            ("b", malformed(DataKind.WEIGHTS)),
            ("b", malformed(DataKind.WEIGHT_DIFF)),
        ],
        ids=["a site's second", "late", "NaN", "malformed", "malformed differences"],
    )
    def test_a_refused_result_leaves_no_trace(self, site, refused):
        results = [("a", train(1, ["Edema"], current_round=2)), (site, refused)]
        accepted, dxo = run(SurgicalAggregator(), results, 2)
        assert accepted == [True, False]
        assert values(dxo) == (1, {"Edema": 1})

    def test_refusal_is_announced_with_authenticated_site_round_and_reason(self):
        engine = Engine()
        fl_ctx = context("b", current_round=4, model=MODEL, engine=engine, claims="north")
        SurgicalAggregator().accept(train(np.nan, ["Edema"], current_round=4), fl_ctx)
        assert engine.events == [headers.CONTRIBUTION_REFUSED]
        refusal = fl_ctx.get_prop(headers.REFUSAL)
        assert (refusal["site"], refusal["round"]) == ("b", 4)
        assert "'conv/kernel' has 2 values that are NaN" in refusal["reason"]

    @pytest.mark.parametrize(
        "rubbish",
        [
            Shareable(),
            DXO(DataKind.METRICS, data={"a": 1}).to_shareable(),
            DXO(DataKind.WEIGHT_DIFF, data={"conv/kernel": 1}).to_shareable(),
            DXO(DataKind.WEIGHTS, data={"head/Edema/kernel": np.zeros(2)}).to_shareable(),
            DXO(DataKind.WEIGHTS, data={3: 4}).to_shareable(),
        ],
        ids=["nothing", "another kind", "no differences", "half a column", "no names"],
    )
    def test_never_raises(self, rubbish):
        assert SurgicalAggregator().accept(cookie(rubbish), context("a", model=MODEL)) is False

    def test_a_count_that_the_weighting_needs_must_come_and_not_be_0(self):
        by_samples = SurgicalAggregator(body_weighting="samples")
        assert "needs the number of images" in refusal(by_samples, train(1, ["Edema"]))
        sent = train(1, ["Edema"], positives={"Edema": 0})
        by_positives = SurgicalAggregator(head_weighting="positives")
        assert "without a positive of ['Edema']" in refusal(by_positives, sent)
        assert refusal(SurgicalAggregator(), sent) is None


class TestStart:
    @pytest.mark.parametrize(
        ("strategy", "mean", "ends"),
        [("fedbn+", 0, True), ("fedavg", 0, False), ("fedbn", 0, False), ("fedbn+", 0.1, False)],
    )
    def test_batch_normalisation_of_random_weights_is_not_frozen(
        self, panics, strategy, mean, ends
    ):
        body = {"bn/moving_mean": np.full(2, mean, np.float32)}
        body["bn/moving_variance"] = np.ones(2, np.float32)
        model = global_model({"conv/kernel": np.zeros(2, np.float32), **body}, batch_norm=body)
        loaded = context(model=model)
        SurgicalAggregator(strategy).handle_event(AppEventType.INITIAL_MODEL_LOADED, loaded)
        assert [reason[:40] for reason in panics] == (
            ["strategy 'fedbn+' freezes batch normalis"] * ends
        )

    def test_a_model_that_could_not_be_loaded_has_ended_the_run_already(self, panics):
        fl_ctx = context()
        fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, ModelLearnable(), private=True, sticky=False)
        SurgicalAggregator().handle_event(AppEventType.INITIAL_MODEL_LOADED, fl_ctx)
        assert panics == []
