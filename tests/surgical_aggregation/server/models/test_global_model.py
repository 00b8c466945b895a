import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.app_common.app_constant import AppConstants

from flare import Engine, column, context, lists
from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.server.models.global_model import GlobalModel, MergeIntoGlobalModel
from surgical_aggregation.wire import headers
from surgical_aggregation.wire import variables as wire

BODY = {"conv/kernel": np.float32([1]), "bn/moving_mean": np.float32([2])}
MOMENTS = {"mean/conv/kernel": np.float32([0.5]), "square/conv/kernel": np.float32([1])}
ADAM = {"optimizer": "fedadam", "learning_rate": 0.01}


def model(columns=(), moments=None, **facts):
    """`columns`: class -> value."""
    own = {name: column(value) for name, value in dict(columns).items()}
    return GlobalModel(wire.join(BODY, own), {"head_features": 2, **facts}, moments or {})


def of(*classes, **lacking):
    """A site's accepted result."""
    return SiteResult(BODY, {name: column(1) for name in classes}, lacking=lacking)


def merged(last, kernel=None, columns=(), round_=0, accepted=None, mean=None, **optimizer):
    """The model after a round with these averages, and the round's context."""
    sent = {"conv/kernel": kernel, "bn/moving_mean": mean}
    body = {name: np.float32(value) for name, value in sent.items() if value is not None}
    data = wire.join(body, {name: column(value) for name, value in dict(columns).items()})
    aggregate = DXO(DataKind.WEIGHTS, data=data)
    props = {headers.ACCEPTED: accepted}
    fl_ctx = context(current_round=round_, model=last, engine=Engine(), props=props)
    generator = MergeIntoGlobalModel(**optimizer)
    after = generator.shareable_to_learnable(aggregate.to_shareable(), fl_ctx)
    return GlobalModel.from_learnable(after), fl_ctx


def test_what_nobody_sent_stays_and_a_new_class_is_added():
    after, _ = merged(model({"Edema": 1, "Mass": 2}), [7], {"Edema": 9, "Hernia": 5})
    assert lists(after.body) == {"conv/kernel": [7], "bn/moving_mean": [2]}
    kernels = {name: kernel for name, (kernel, _) in after.columns.items()}
    assert lists(kernels) == {"Edema": [9, 9], "Hernia": [5, 5], "Mass": [2, 2]}


def test_manifest_keeps_who_trained_a_class_in_which_rounds_and_what_is_removed():
    gone = {"Edema": {"round": 1, "sites": ["a"]}, "Hernia": {"round": 1, "sites": ["b"]}}
    last = model(removed=gone)
    trained = [("Edema", "b"), ("Mass", "a"), ("Mass", "a"), ("Edema", "a")]
    for round_, (name, site) in enumerate(trained):
        last, _ = merged(last, None, {name: 1}, round_, {site: of(name)})
    apart = [[0, 0, ["b"]], [3, 3, ["a"]]]
    assert last.manifest["classes"] == {
        "Edema": {"sites": ["a", "b"], "last_round": 3, "rounds": apart},
        "Mass": {"sites": ["a"], "last_round": 2, "rounds": [[1, 2, ["a"]]]},
    }
    assert (last.manifest["round"], last.manifest["removed"]) == (4, {"Hernia": gone["Hernia"]})


def test_manifest_keeps_in_which_rounds_each_sites_result_was_averaged_with_columns_or_not():
    last = model(contributed={"a": [[0, 1]], "old": [[0, 1]]})
    for round_, sites in [(2, "ab"), (3, "b"), (4, "ab"), (5, "a")]:
        nan = [np.nan] if round_ == 5 else None  # the round is dropped
        last, _ = merged(last, nan, round_=round_, accepted=dict.fromkeys(sites, of()))
    known = {"a": ((0, 2), (4, 4)), "b": ((2, 4),), "old": ((0, 1),)}
    assert facts_of(Checkpoint(last.variables, last.manifest)).contributed == known


def test_manifest_keeps_what_a_class_lacks_until_its_site_has_it():
    last = model()
    for round_, site in enumerate(["a", "b", "b"]):
        lacks = {} if round_ == 2 else {"Edema": "positive"}
        last, _ = merged(last, None, {"Edema": 1}, round_, {site: of("Edema", **lacks)})
        never = facts_of(Checkpoint(last.variables, last.manifest)).never_learned
        assert bool(never) == bool(lacks)
    assert last.manifest["classes"]["Edema"]["lacking"] == {"a": "positive"}


def test_the_optimizer_takes_a_step_and_remembers_it_for_the_next():
    momentum = {"optimizer": "fedavgm", "momentum": 0.5, "mean": [4]}
    kinds = VariableKinds(frozenset({"bn/moving_mean"}))
    first, _ = merged(model({"Mass": 2}, **kinds.facts()), [3], {"Mass": 2}, **momentum)
    assert lists(first.body) == {"conv/kernel": [3], "bn/moving_mean": [4]}
    second, _ = merged(first, [3], round_=1, **momentum)  # no change; half of the last step
    assert lists(second.body) == {"conv/kernel": [4], "bn/moving_mean": [4]}
    assert second.moments["velocity/conv/kernel"].tolist() == [1]
    assert merged(second, [7])[0].moments == {}  # without one nothing is remembered
    with pytest.raises(ValueError, match=r"one of \('none', 'fedavgm', 'fedadam'\); got"):
        MergeIntoGlobalModel("adam")


def test_an_average_over_rounds_is_kept_beside_the_optimizers_moments():
    how = {"optimizer": "fedavgm", "momentum": 0.5, "average_decay": 0.75}
    first, _ = merged(model({"Mass": 2}), [3], {"Mass": 2}, **how)
    second, _ = merged(first, [3], round_=1, **how)  # the optimizer continues to 5; Mass is absent
    assert lists(second.body)["conv/kernel"] == [4]
    assert lists(second.moments) == {
        "velocity/conv/kernel": [1], "velocity/head/Mass/kernel": [0, 0],
        "velocity/head/Mass/bias": [0], "average/conv/kernel": [3.25],
        "average/head/Mass/kernel": [2, 2], "average/head/Mass/bias": [2],
    }  # fmt: skip
    assert not [name for name in merged(second, [7])[0].moments if "average" in name]
    with pytest.raises(ValueError, match="average_decay must be"):
        MergeIntoGlobalModel(average_decay=1)


class TestDroppedRound:
    """A step that is not finite leaves the model unchanged; the run continues."""

    @pytest.mark.parametrize(("value", "optimizer"), [
        (np.inf, {}), (1e38, ADAM), (3e38, {"optimizer": "fedavgm", "learning_rate": 2.0}),
    ], ids=["an average", "a moment: its square", "the step itself"])  # fmt: skip
    def test_leaves_model_moments_and_what_was_measured_as_they_were(self, value, optimizer):
        facts = {"head_features": 2, "classes": {"Mass": {}}, "validation": {"round": 3}}
        last = model({"Mass": 2}, MOMENTS, round=3, **facts)
        after, fl_ctx = merged(last, [value], {"Mass": 4}, 3, {"a": of("Mass")}, **optimizer)
        assert lists(after.variables) == lists(last.variables)
        assert lists(after.moments) == lists(MOMENTS)
        assert after.manifest == {**facts, "round": 4}
        assert fl_ctx.get_engine().events == [headers.ROUND_DROPPED]

    def test_says_which_variable_and_whose_values_were_the_largest(self):
        large = SiteResult({"conv/kernel": np.float32([1e38])}, {"Mass": column(-5)})
        small = SiteResult({"conv/kernel": np.float32([1])}, {"Mass": column(-7)})
        _, fl_ctx = merged(model(), [1e38], round_=3, accepted={"a": small, "b": large}, **ADAM)
        drop = fl_ctx.get_prop(headers.DROP)
        lost = "1 variables would become NaN or infinite, e.g. 'square/conv/kernel'"
        largest = "received: b 1e+38 in 'conv/kernel'; a 7 in 'head/Mass/kernel'. Check"
        assert drop["round"] == 3 and lost in drop["reason"] and largest in drop["reason"]

    def test_a_large_value_is_merged_if_finite_and_its_senders_need_not_be_known(self):
        after, fl_ctx = merged(model(), [1e38])
        assert after.body["conv/kernel"].tolist() == [np.float32(1e38)]
        assert fl_ctx.get_engine().events == []
        _, fl_ctx = merged(model(), [np.nan, 1])
        assert "Largest values received: unknown." in fl_ctx.get_prop(headers.DROP)["reason"]


def task(current_round=0, first=0, **facts):
    sent = model({"Edema": 1}, {"velocity/conv/kernel": np.float32([1])}, **facts)
    fl_ctx = context(current_round=current_round, props={AppConstants.START_ROUND: first})
    return MergeIntoGlobalModel().learnable_to_shareable(sent.to_learnable(), fl_ctx)


@pytest.mark.parametrize(("round_", "first"), [(0, 0), (1, 0), (5, 5), (6, 5)])
def test_sites_get_variables_first_the_bodys_digest_and_what_the_run_continues(round_, first):
    history = [{"job": "a", "rounds": [0, 2]}, {"job": "b", "rounds": [2, 5]}]
    sent = task(round_, first, history=history, initial_body_sha256="of the first run", secret=1)
    assert from_shareable(sent).meta == {}
    assert "velocity" not in str(sent) and "secret" not in str(sent)
    assert sent.get_header(headers.INITIAL_BODY) == (digest(BODY) if round_ == first else None)
    assert sent.get_header(headers.CONTINUES) == {"jobs": ["b", "a"], "round": 5}
    assert task(round_, first).get_header(headers.CONTINUES) is None
