import numpy as np
import pytest

import study_runs
from cxr_study.evaluation.seed_intervals import interval
from cxr_study.jobs.methods import Row
from cxr_study.studies.analysis.claim_checks import (
    DOES_NOT_HOLD,
    HOLDS,
    NOT_DECIDED,
    Claim,
    Finding,
    Judged,
    StudyEvidence,
    judge,
    table,
)
from cxr_study.studies.papers.claim import EVERY_SITE, NEARER, SAME, Comparison
from study_scores import LACKS, results

OURS, THEIRS, OTHERS = (Row(name, "fedbn+") for name in ("surgical", "vanilla", "partial_loss"))


def claim(*comparisons, study="clients"):
    return Claim("Ours is better", study, "Table 1", "0.8 and 0.7", comparisons)


def study(ours, theirs, digests=("a", "b"), scenario="2", planned=()):
    """Results of two rows with such AUROCs, one per seed."""
    reached = {
        study_runs.run(row.method, row.strategy, seed, scenario): {
            ("global", "nih"): {"Edema": value}
        }
        for row, values in ((OURS, ours), (THEIRS, theirs))
        for seed, value in enumerate(values)
    }
    by_row = dict(zip((OURS, THEIRS), digests, strict=True))
    return results(reached, planned, digests=lambda run: {"global": by_row[run.row]})


def judged(kind, ours, theirs, **other):
    which = Comparison(OURS, THEIRS, "nih", kind)
    [one] = judge([claim(which)], study(ours, theirs, **other))
    [finding] = one.findings
    return finding


class TestVerdicts:
    @pytest.mark.parametrize(
        ("theirs", "wanted"),
        [
            ([0.7, 0.71, 0.69], HOLDS),
            ([0.9, 0.91, 0.89], DOES_NOT_HOLD),
            ([0.9, 0.7, 0.8], NOT_DECIDED),
            ([0.7], NOT_DECIDED),
            ([np.nan] * 3, NOT_DECIDED),
        ],
    )
    def test_the_interval_over_seeds_decides(self, theirs, wanted):
        ours = [0.8, 0.8, 0.8][: len(theirs)]
        found = judged("is ahead of", ours, theirs)
        assert found.verdict == wanted
        differences = [a - b for a, b in zip(ours, theirs, strict=True) if not np.isnan(b)]
        assert found.difference == interval(differences)
        assert found.scenarios == ("2",)

    @pytest.mark.parametrize(
        ("margin", "wanted"), [(0.0, DOES_NOT_HOLD), (0.1, NOT_DECIDED), (0.2, HOLDS)]
    )
    def test_a_margin_counts_in_the_verdict_and_not_in_the_number(self, margin, wanted):
        which = Comparison(OURS, THEIRS, "nih", margin=margin)
        [one] = judge([claim(which)], study([0.8] * 3, [0.9, 0.91, 0.89]))
        assert one.verdict == wanted
        assert table([one])["difference"].tolist() == [pytest.approx(-0.1)]

    @pytest.mark.parametrize(
        ("digests", "theirs", "wanted"),
        [
            (("a", "a"), [0.8], HOLDS),
            (("a", "b"), [0.8], NOT_DECIDED),
            (("a", "b"), [0.8, 0.7, 0.9], NOT_DECIDED),
            (("a", "b"), [0.7, 0.71, 0.69], DOES_NOT_HOLD),
            (("a", "b"), [0.9, 0.91, 0.89], DOES_NOT_HOLD),
            (("a", "a"), [np.nan], NOT_DECIDED),
        ],
    )
    def test_where_models_should_be_the_same_they_decide_and_else_what_they_reach(
        self, digests, theirs, wanted
    ):
        found = judged(SAME, [0.8] * len(theirs), theirs, digests=digests)
        assert found.verdict == wanted

    @pytest.mark.parametrize(
        ("verdicts", "wanted"),
        [
            ([HOLDS, HOLDS], HOLDS),
            ([HOLDS, NOT_DECIDED], NOT_DECIDED),
            ([HOLDS, NOT_DECIDED, DOES_NOT_HOLD], DOES_NOT_HOLD),
        ],
    )
    def test_a_claim_holds_where_all_comparisons_do(self, verdicts, wanted):
        which = Comparison(OURS, THEIRS, "nih")
        findings = tuple(Finding(which, ("2",), None, each) for each in verdicts)
        assert Judged(claim(which), findings).verdict == wanted


class TestJudge:
    def test_other_studies_claims_and_what_was_not_to_be_run_are_not_judged(self):
        run = Comparison(OURS, THEIRS, "nih")
        others = [
            Comparison(OURS, OTHERS, "nih"),
            Comparison(OURS, THEIRS, "mimic"),
            Comparison(OURS, THEIRS, "nih", scenarios=("4",)),
        ]
        own, other = claim(*others, run), claim(run, study="shared-classes")
        [found] = judge([other, own], study([0.8], [0.7]))
        assert found.claim is own
        assert [finding.comparison for finding in found.findings] == [run]
        assert judge([claim(*others)], study([0.8], [0.7])) == ()

    def test_what_is_not_finished_is_not_decided(self):
        planned = [study_runs.run(OTHERS.method, scenario="2")]
        [found] = judge(
            [claim(Comparison(OURS, OTHERS, "nih"))], study([0.8], [0.7], planned=planned)
        )
        assert found.findings[0].difference is None and found.verdict == NOT_DECIDED


class TestTable:
    def test_every_finding_is_a_line(self):
        whiches = [
            Comparison(OURS, THEIRS, "nih"),
            Comparison(OURS, THEIRS, "nih", group="shared", model="nowhere", margin=0.1),
        ]
        found = judge([claim(*whiches)], study([0.8, 0.8, 0.8], [0.7, 0.71, 0.69]))
        wanted = found[0].findings[0].difference
        first, second = table(found).to_dict("records")
        assert first == {
            "claim": "Ours is better",
            "source": "Table 1",
            "published": "0.8 and 0.7",
            "kind": "is ahead of",
            "better": "surgical-fedbn+",
            "worse": "vanilla-fedbn+",
            "model": "",
            "test": "nih",
            "group": "all",
            "scenarios": "2",
            "margin": 0.0,
            "difference": wanted.mean,
            "low": wanted.low,
            "high": wanted.high,
            "seeds": 3,
            "verdict": HOLDS,
        }
        assert (second["model"], second["group"], second["margin"]) == ("nowhere", "shared", 0.1)
        assert np.isnan(second["difference"]) and second["seeds"] == 0

    def test_numbers_are_numbers_where_none_is_defined_and_columns_stand_without_a_claim(self):
        lines = table(judge([claim(Comparison(OURS, THEIRS, "nih"))], study([0.8], [0.7])))
        assert lines["difference"].tolist() == [pytest.approx(0.1)]
        assert lines[["difference", "low", "high"]].dtypes.tolist() == [float] * 3
        assert np.isnan(lines["low"].iloc[0])
        assert table(()).empty and list(table(())) == list(lines)


LOCAL = Row("personalised", "fedbn")
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
AHEAD = Comparison(OURS, THEIRS, "nih")


def run(row, scenario="2", seed=0, sites=SITES):
    return study_runs.run(row.method, row.strategy, seed, scenario, sites)


def of(reached, planned=(), **other):
    """Evidence of {(row, scenario, seed): AUROC of a global model on NIH}."""
    finished = {run(*key): {("global", "nih"): {"Edema": value}} for key, value in reached.items()}
    return StudyEvidence(results(finished, [run(*key) for key in planned], **other))


def numbers(evidence, which=AHEAD):
    return evidence.numbers(which, evidence.scenarios(which))


def named(scenarios):
    return [scenario.name for scenario in scenarios]


class TestEvidence:
    def test_scenarios_are_those_that_were_to_be_run_with_all_rows_in_the_studys_order(self):
        evidence = of(
            {(OURS, "10", 0): 0.7, (OURS, "2", 0): 0.8, (OURS, "4", 0): 0.7, (THEIRS, "2", 0): 0.7},
            planned=[(THEIRS, "10", 0)],
        )
        assert named(evidence.scenarios(AHEAD)) == ["2", "10"]
        assert evidence.scenarios(Comparison(OURS, THEIRS, "nih", NEARER)) == []
        assert evidence.scenarios(Comparison(OURS, THEIRS, "mimic")) == []
        some = Comparison(OURS, THEIRS, "nih", scenarios=("10", "8"))
        assert named(evidence.scenarios(some)) == ["10"]

    def test_every_seed_with_all_scenarios_has_a_number(self):
        ours = {(OURS, name, seed): 0.8 for name in ("2", "4") for seed in (1, 0, 2, 3)}
        theirs = {(THEIRS, name, seed): 0.7 - 0.1 * seed for name in ("2", "4") for seed in (0, 1)}
        partly = {(THEIRS, "2", 2): 0.7, (THEIRS, "4", 2): np.nan, (THEIRS, "2", 3): 0.7}
        found = numbers(of(ours | theirs | partly, planned=[(THEIRS, "4", 3)]))
        assert found == {0: pytest.approx(0.1), 1: pytest.approx(0.2)}


class TestModels:
    @pytest.fixture
    def evidence(self):
        """Sites' own models: NIH's 0.9 on NIH and 0.7 elsewhere, CheXpert's 0.6 and 0.5 there."""
        nih = {"Edema": 0.9, "Mass": 0.9, "Fracture": LACKS}
        elsewhere = {"Edema": 0.7, "Mass": 0.7, "Fracture": LACKS}
        chexpert = {"Edema": 0.6, "Mass": LACKS, "Fracture": 0.6}
        mimic = {"Edema": 0.5, "Mass": LACKS, "Fracture": 0.5}
        own = {
            ("nih", "nih"): {name: nih[name] for name in ("Edema", "Mass")},
            ("nih", "mimic"): elsewhere,
            ("chexpert", "nih"): {name: chexpert[name] for name in ("Edema", "Mass")},
            ("chexpert", "mimic"): mimic,
        }
        ours = {("global", "nih"): dict.fromkeys(("Edema", "Mass"), 1.0)}
        ours["global", "mimic"] = dict.fromkeys(nih, 1.0)
        reached = {run(OURS, "20"): ours, run(LOCAL, "20"): own}
        return StudyEvidence(results(reached, study="nih-chexpert"))

    @pytest.mark.parametrize(
        ("test", "group", "model", "wanted"),
        [
            ("nih", "all", None, 0.9),  # the tested site's own
            ("nih", "shared", None, 0.9),  # the other one does not count
            ("mimic", "shared", None, (0.7 + 0.5) / 2),  # of both sites
            ("mimic", "nih", None, 0.7),  # of the one that has the classes
            ("mimic", "shared", "chexpert", 0.5),  # of the one that is meant
            ("nih", "shared", "chexpert", 0.6),
        ],
    )
    def test_which_of_a_rows_models_is_meant(self, evidence, test, group, model, wanted):
        which = Comparison(OURS, LOCAL, test, group=group, model=model)
        assert numbers(evidence, which) == {0: pytest.approx(1 - wanted)}

    def test_of_every_site_it_is_the_mean_over_the_test_sets_that_have_such_classes(self, evidence):
        for group, wanted in (("shared", (0.9 + (0.7 + 0.5) / 2) / 2), ("elsewhere", None)):
            which = Comparison(OURS, LOCAL, EVERY_SITE, group=group)
            assert numbers(evidence, which) == (
                {} if wanted is None else {0: pytest.approx(1 - wanted)}
            )

    @pytest.mark.parametrize("model", [None, "nowhere"])
    def test_what_no_model_defines_is_no_number(self, evidence, model):
        which = Comparison(OURS, LOCAL, "mimic", model=model)
        assert numbers(evidence, which) == {}


class TestSame:
    def test_models_are_the_same_where_every_seed_asked_for_has_the_same_digests(self):
        def same(digests, seeds=(0, 1)):
            evidence = of(
                {(row, "2", seed): 0.7 for row, seed in digests},
                digests=lambda run: {"global": digests[run.row, run.seed]},
            )
            return evidence.same(AHEAD, evidence.scenarios(AHEAD), seeds)

        digests = {(OURS, 0): "a", (OURS, 1): "b", (THEIRS, 0): "a", (THEIRS, 1): "b"}
        assert same(digests)
        assert not same(digests | {(THEIRS, 1): "x"})
        assert same(digests | {(THEIRS, 1): "x"}, seeds=[0])
