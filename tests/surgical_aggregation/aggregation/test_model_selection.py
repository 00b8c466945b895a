"""Choosing the best model, and a simulation of federations whose sites are absent now and then."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgical_aggregation.aggregation.model_selection import Measured, ModelComparison, Selection

ROUNDS = np.arange(1, 149)
RISES = 0.3 * np.exp(-ROUNDS / 30) + 0.001 * np.maximum(0, ROUNDS - 80)
CURVES = {"falls": 0.3 * np.exp(-ROUNDS / 50), "rises from round 80 on": RISES}
"""Loss over rounds that all sites share; that of round 0 has no columns."""

EDEMA, BOTH = ("Edema",), ("Edema", "Mass")


def measured(round_, losses, classes=None, columns=EDEMA):
    """A model; all sites have the class Edema unless given others."""
    return Measured(round_, frozenset(columns), losses, classes or dict.fromkeys(losses, EDEMA))


def chosen(models, min_share=0.5):
    """The best model's round, and the reason for each model."""
    selection = ModelComparison(min_share)
    verdicts = [selection.consider(model) for model in models]
    return selection.best.round if selection.best else None, verdicts


@pytest.mark.parametrize(("sites", "dropout"), [(50, 0.1), (200, 0.05)])
@pytest.mark.parametrize(("curve", "noise"), [
    ("falls", 0.0025), *(("rises from round 80 on", n) for n in (0.001, 0.0025, 0.02, 0.05)),
])  # fmt: skip
def test_the_best_model_is_that_of_full_information_or_as_good(sites, dropout, curve, noise):
    """A site's loss: the site's level, the common curve, and noise per round and site."""
    for seed in range(10):
        random = np.random.default_rng(seed)
        levels = random.normal(0.4, 0.1, sites)
        losses = levels + CURVES[curve][:, None] + random.normal(0, noise, (len(ROUNDS), sites))
        losses = np.maximum(losses, 0.01)
        present = random.random(losses.shape) >= dropout
        best, verdicts = chosen(
            measured(index, {f"site-{site}": row[site] for site in np.flatnonzero(there)})
            for index, (row, there) in enumerate(zip(losses, present, strict=True))
        )
        assert all(verdict.compared for verdict in verdicts[1:])
        means = losses.mean(1)
        assert means[best] - means.min() < 3 * noise / np.sqrt(50), seed
        if noise == 0.0025:  # with less there is more than one near it, with more it is hidden
            assert abs(best - means.argmin()) <= 3, seed


near = st.integers(0, 24).map(lambda number: 4 + number / 64)  # less than a tenth of 4 apart


@given(st.lists(st.lists(near, min_size=3, max_size=3), min_size=1, max_size=8))
def test_with_all_sites_in_every_round_the_first_with_the_smallest_mean_is_the_best(rows):
    models = [measured(r, dict(zip("abc", row, strict=True))) for r, row in enumerate(rows)]
    best, verdicts = chosen(models)
    means = [sum(row) / 3 for row in rows]
    assert best == means.index(min(means))
    assert all(verdict.compared for verdict in verdicts[1:])


@pytest.mark.parametrize(("first", "then"), [(1e-9, 16.1), (16.1, 1e-9), (0.1, 0.7)])
@pytest.mark.parametrize("honest", [2, 3, 9])
def test_no_site_alone_fixes_a_model_as_the_best_or_unseats_it(first, then, honest):
    """The others' losses change by a tenth; the dishonest site's change is opposite."""
    before, after = (0.5, 0.4) if first < then else (0.4, 0.5)
    losses = [dict.fromkeys("abcdefghi"[:honest], loss) for loss in (before, after)]
    models = [measured(0, losses[0] | {"liar": first}), measured(1, losses[1] | {"liar": then})]
    best, (_, verdict) = chosen(models)
    assert best == (first < then) and verdict.compared
    assert f"; liar's {then:.4g} counts as " in verdict.why


def test_of_two_sites_nobody_knows_which_one_is_wrong_and_small_differences_always_count():
    assert chosen([measured(0, {"a": 0.5, "b": 0.9}), measured(1, {"a": 0.6, "b": 0.1})])[0] == 1
    small = [dict.fromkeys("abc", 0.5), {"a": 0.49, "b": 0.49, "c": 0.54}]
    assert chosen([measured(*model) for model in enumerate(small)])[0] == 0


def test_the_share_is_one_of_all_sites_that_measured_a_model_of_the_run():
    models = [
        measured(0, dict.fromkeys("abcd", 0.5)),
        measured(1, dict.fromkeys("ab", 0.4)),  # a half
        measured(2, {"a": 0.1}),
        measured(3, dict.fromkeys("bcd", 0.1)),  # only b measured both
    ]
    best, verdicts = chosen(models)
    found = [(verdict.best, verdict.compared) for verdict in verdicts]
    assert best == 1 and found == [(True, False), (True, True), (False, False), (False, False)]
    assert verdicts[2].why.startswith("only 1 of 4 sites measured it with")
    assert verdicts[3].why.startswith("only 1 of 4 sites measured both it and the best one")
    best, verdicts = chosen([measured(0, {})])
    assert best is None and not verdicts[0].compared


def test_a_share_is_exact_in_decimals():
    few, all_sites = "abcdefg", "abcdefghijklmnopqrstuvwxy"
    models = [measured(0, dict.fromkeys(all_sites, 0.5)), measured(1, dict.fromkeys(few, 0.4))]
    assert chosen(models, 0.28)[0] == 1  # 0.28 * 25 is more than 7 in floating point


def test_one_that_was_the_best_of_few_gives_way_when_many_come_in():
    best, verdicts = chosen([measured(0, {"a": 0.1}), measured(1, dict.fromkeys("abc", 0.9))])
    assert best == 1 and not verdicts[1].compared
    assert "that of round 0 is no longer eligible: only 1 of 3 sites" in verdicts[1].why


def test_a_column_that_an_absent_site_needs_is_needed():
    classes = {"a": EDEMA, "b": ("Mass",)}
    models = [measured(0, {"a": 0.5, "b": 0.5}, classes), measured(1, {"a": 0.1})]
    best, verdicts = chosen([*models, measured(2, {"a": 0.9}, columns=BOTH)])
    assert verdicts[1].why == "it has no columns for all classes of ['b']"
    assert best == 2


def test_a_loss_over_other_classes_is_not_compared():
    after = {"a": EDEMA, "b": BOTH}
    models = [
        measured(0, {"a": 0.5, "b": 0.5}, dict.fromkeys("ab", BOTH), BOTH),
        measured(1, {"a": 0.1, "b": 0.5}, after, BOTH),
        measured(2, {"a": 9.0, "b": 0.4}, after, BOTH),
    ]
    assert chosen(models)[0] == 2


class TestSelection:
    """Decisions on one model after another, from the sites' metrics."""

    def after(self, selection, round_, losses, classes=EDEMA, columns=BOTH, sites="abc", **facts):
        selection.begin()
        for site, loss in losses.items():
            of = classes.get(site, EDEMA) if isinstance(classes, dict) else classes
            selection.measure(site, {"bce": loss}, of)
        return selection.decide(round_, columns, sites=sites, **facts)

    def earlier(self, metric="bce", classes=EDEMA, **losses):
        """Record of an earlier run's best model, that of round 2."""
        of = {site: list(classes) for site in losses}
        columns = {"columns": list(classes), "value": 0.5}
        return {"round": 2, "metric": metric, "classes": of, "sites": losses, **columns}

    def test_who_measured_the_best_model_votes_and_who_trained(self):
        selection = Selection()
        assert not selection.votes("a", []) and selection.votes("a", ["a"])
        selection.accept("a")
        assert selection.votes("a", [])
        selection.continue_from(self.earlier(b=0.5), None)
        assert selection.votes("b", []) and not selection.votes("c", [])

    def test_what_was_measured_of_a_model_before_does_not_count_for_the_next(self):
        selection = Selection()
        assert self.after(selection, 0, {"a": 0.5, "b": 0.5}).verdict.best
        assert selection.measure("b", {"bce": 0.1}, EDEMA)  # late
        decision = self.after(selection, 1, {"a": 0.5})
        assert not decision.verdict.best and decision.compared

    def test_a_candidate_is_no_rounds_model(self):
        selection = Selection()
        self.after(selection, 0, {"a": 0.5})
        candidate = self.after(selection, 5, {"a": 0.1}, candidate=True)
        assert candidate.verdict.best and not candidate.best_of_rounds and candidate.compared
        then = self.after(selection, 6, {"a": 0.3})
        assert then.best_of_rounds and not then.verdict.best
        continued = Selection()
        continued.continue_from(candidate.record, then.record)
        assert self.after(continued, 7, {"a": 0.2}).best_of_rounds

    @pytest.mark.parametrize(("sites", "record", "losses", "dropped", "best"), [
        ("ab", None, {"a": 9.0}, None, True),
        ("abc", {"a": 0.5, "b": 0.5, "c": 0.5}, {"a": 0.1, "b": 0.1}, None, True),
        ("abc", {"a": 0.5, "b": 0.5, "c": 0.5}, {"a": 0.1}, None, False),
        ("acde", {"a": 0.1, "b": 0.1}, {"a": 0.9, "c": 0.9, "d": 0.9}, "only 1 of 3 sites", True),
        ("ab", {"a": 0.1, "b": 0.1, "classes": BOTH}, {"a": 0.9, "b": 0.9}, "only 0 of 2", True),
        ("ab", {"a": 0.1, "metric": "focal"}, {"a": 0.9}, "its loss is 'focal', and this", True),
    ], ids=["a fresh run", "one is absent", "too many are absent", "too few measured it",
            "other classes", "another loss"])  # fmt: skip
    def test_an_earlier_best_is_dropped_if_incomparable(self, sites, record, losses, dropped, best):
        selection = Selection()
        selection.continue_from(record and self.earlier(**record), None)
        decision = self.after(selection, 5, losses, sites=sites)
        assert decision.best_of_rounds == best
        assert decision.dropped is None if dropped is None else dropped in decision.dropped[1]

    def test_an_earlier_best_without_a_metric_is_dropped(self):
        selection = Selection()
        selection.continue_from({"round": 3}, None)
        assert self.after(selection, 5, {"a": 0.9}).dropped[1].startswith("its loss is None")

    def test_with_a_new_class_there_is_no_best_model_until_it_has_a_column(self):
        selection, losses, new = Selection(), dict.fromkeys("abc", 0.5), {"c": ("Mass",)}
        selection.continue_from(self.earlier(a=0.1, b=0.1), None)
        decision = self.after(selection, 5, losses, new, EDEMA)
        assert decision.dropped == (2, "it has no columns for all classes of ['c']")
        assert not self.after(selection, 6, losses, new, EDEMA).verdict.best
        assert self.after(selection, 7, losses, new).verdict.best

    @pytest.mark.parametrize("share", [0, -0.5, 1.5])
    def test_a_share_outside_0_to_1_is_refused(self, share):
        with pytest.raises(ValueError, match="min_share must be above 0 and at most 1"):
            Selection(min_share=share)
