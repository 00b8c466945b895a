import pytest

from cxr_study.comparison.claims import CLAIMS, equal_classes, findings
from cxr_study.comparison.grid import ENDINGS, ROWS
from cxr_study.comparison.measures import MEASURES
from cxr_study.evaluation.verdicts import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED
from cxr_study.jobs.methods import Row

SHARED, OWN, OTHER, ALL = MEASURES
COLLAPSE, PARTIAL, FEDBN_PLUS = CLAIMS


def trained(made_up, figures):
    """Outcomes of {(method, strategy): [mean AUROC on foreign classes, by seed]}."""
    return {
        (Row(*row), seed): made_up.outcome(made_up.cell(*row, seed), other=value)
        for row, values in figures.items()
        for seed, value in enumerate(values)
    }


def found(claim, outcomes, better, worse, measure=OTHER):
    """The findings at both endings about two rows."""
    return [
        finding
        for finding in findings(claim, outcomes)
        if (finding.better, finding.worse, finding.measure) == (Row(*better), Row(*worse), measure)
    ]


class TestFindings:
    def test_differences_are_paired_by_seed(self, made_up):
        outcomes = trained(
            made_up,
            {("surgical", "fedavg"): [0.9, 0.5], ("vanilla", "fedavg"): [0.8, 0.4]},
        )
        for finding in found(COLLAPSE, outcomes, ("surgical", "fedavg"), ("vanilla", "fedavg")):
            assert finding.difference.mean == pytest.approx(0.1)
            assert finding.difference.high - finding.difference.low < 1e-9
            assert finding.verdict == REPRODUCED

    def test_the_row_that_is_claimed_to_be_better_comes_first(self, made_up):
        outcomes = trained(
            made_up,
            {("surgical", "fedavg"): [0.5, 0.5], ("vanilla", "fedavg"): [0.6, 0.6]},
        )
        pair = ("surgical", "fedavg"), ("vanilla", "fedavg")
        assert [f.verdict for f in found(COLLAPSE, outcomes, *pair)] == [NOT_REPRODUCED] * 2
        assert found(COLLAPSE, outcomes, *reversed(pair)) == []

    def test_differences_that_scatter_about_zero_decide_nothing(self, made_up):
        outcomes = trained(
            made_up,
            {("surgical", "fedbn+"): [0.5, 0.7], ("partial_loss", "fedbn+"): [0.6, 0.6]},
        )
        pair = ("surgical", "fedbn+"), ("partial_loss", "fedbn+")
        assert [f.verdict for f in found(PARTIAL, outcomes, *pair)] == [NOT_DECIDED] * 2

    def test_a_seed_that_one_of_them_lacks_is_left_out(self, made_up):
        outcomes = trained(
            made_up,
            {("surgical", "fedbn+"): [0.7, 0.7, 0.1], ("surgical", "fedavg"): [0.6, 0.6]},
        )
        pair = ("surgical", "fedbn+"), ("surgical", "fedavg")
        for finding in found(FEDBN_PLUS, outcomes, *pair):
            assert (finding.difference.seeds, finding.verdict) == (2, REPRODUCED)

    def test_nothing_trained_decides_nothing(self):
        for claim in CLAIMS:
            assert {f.verdict for f in findings(claim, {})} == {NOT_DECIDED}
            assert {f.difference for f in findings(claim, {})} == {None}

    def test_every_pair_is_tested_on_every_measure_at_both_endings(self):
        for claim in CLAIMS:
            tested = [(f.better, f.worse, f.measure, f.ending) for f in findings(claim, {})]
            assert len(set(tested)) == len(tested)
            assert len(tested) == len(claim.pairs) * len(claim.measures) * len(ENDINGS)


class TestClaims:
    def test_they_are_about_rows_of_the_table_and_its_figures(self):
        for claim in CLAIMS:
            assert {row for pair in claim.pairs for row in pair} <= set(ROWS)
            assert set(claim.measures) <= set(MEASURES)

    def test_pooled_with_negatives_is_held_against_surgical_and_partial_loss(self):
        worse = {(better.method, worse.method) for better, worse in COLLAPSE.pairs}
        assert worse == {
            ("surgical", "vanilla"),
            ("surgical", "centralised"),
            ("centralised-partial", "centralised"),
        }
        assert all(better.strategy == worse.strategy for better, worse in COLLAPSE.pairs)
        assert COLLAPSE.measures == PARTIAL.measures == (OWN, OTHER)

    def test_fedbn_plus_is_held_against_fedavg_of_the_same_method_across_sites(self):
        assert {(b.strategy, w.strategy) for b, w in FEDBN_PLUS.pairs} == {("fedbn+", "fedavg")}
        assert all(better.method == worse.method for better, worse in FEDBN_PLUS.pairs)
        assert FEDBN_PLUS.measures == (OTHER, ALL)


class TestEqualClasses:
    def verdict(self, made_up, digests):
        cells = [made_up.cell("surgical"), made_up.cell("vanilla")]
        outcomes = {
            cell.name: made_up.outcome(cell, digest=digest)
            for cell, digest in zip(cells, digests, strict=False)
        }
        return equal_classes(cells, outcomes)

    def test_the_same_models_reproduce_it_and_any_difference_does_not(self, made_up):
        assert self.verdict(made_up, ["a", "a"]) == REPRODUCED
        assert self.verdict(made_up, ["a", "b"]) == NOT_REPRODUCED

    def test_a_training_that_failed_leaves_it_undecided(self, made_up):
        assert self.verdict(made_up, ["a"]) == NOT_DECIDED

    def test_sites_without_a_common_class_leave_it_undecided(self):
        assert equal_classes([], {}) == NOT_DECIDED
