import io

import numpy as np
import pandas as pd
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
    judge,
    table,
)
from cxr_study.studies.papers.claim import SAME, Comparison
from study_scores import results

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
    def test_claims_about_other_studies_are_not_judged(self):
        which = Comparison(OURS, THEIRS, "nih")
        own, other = claim(which), claim(which, study="shared-classes")
        [found] = judge([other, own], study([0.8], [0.7]))
        assert found.claim is own

    def test_comparisons_that_were_not_to_be_run_are_not_judged(self):
        run = Comparison(OURS, THEIRS, "nih")
        others = [
            Comparison(OURS, OTHERS, "nih"),
            Comparison(OURS, THEIRS, "mimic"),
            Comparison(OURS, THEIRS, "nih", scenarios=("4",)),
        ]
        [found] = judge([claim(*others, run)], study([0.8], [0.7]))
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

    def test_numbers_are_numbers_where_none_is_defined(self):
        lines = table(judge([claim(Comparison(OURS, THEIRS, "nih"))], study([0.8], [0.7])))
        assert lines["difference"].tolist() == [pytest.approx(0.1)]
        assert lines[["difference", "low", "high"]].dtypes.tolist() == [float] * 3
        assert np.isnan(lines["low"].iloc[0])

    def test_without_a_claim_there_is_no_line(self):
        found = pd.read_csv(io.StringIO(table(()).to_csv(index=False)))
        wanted = table(judge([claim(Comparison(OURS, THEIRS, "nih"))], study([0.8], [0.7])))
        assert found.empty and list(found) == list(wanted)
