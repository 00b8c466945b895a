from dataclasses import replace

import numpy as np
import pytest

import study_runs
from cxr_studies.analysis.claim_checks import Finding, Judged, StudyEvidence, judge, table
from cxr_studies.analysis.intervals_and_tests import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, interval
from cxr_studies.papers.claims import EVERY_SITE, Claim, Comparison
from cxr_studies.plan.row import Row
from study_runs import LACKS, of_global, scored

OURS, THEIRS, OTHERS = (Row(name, "fedbn+") for name in ("surgical", "vanilla", "partial_loss"))
LOCAL = Row("personalised", "fedbn")
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
AHEAD = Comparison(OURS, THEIRS, "nih")


def claim(*comparisons, study="clients"):
    return Claim("Ours is better", study, "Table 1", "0.8 and 0.7", comparisons)


def run(row, scenario="2", seed=0):
    return study_runs.run(row.method, row.strategy, seed, scenario, SITES)


def of(reached, planned=(), **other):
    """Results of {(row, scenario, seed): AUROC of a global model on NIH}."""
    finished = of_global({run(*key): {"Edema": value} for key, value in reached.items()})
    return scored(finished, [run(*key) for key in planned], **other)


def two(ours, theirs, digests=None, planned=()):
    """Results of two rows with such AUROCs, one per seed, and digests of models."""
    reached = {(OURS, "2", seed): value for seed, value in enumerate(ours)}
    reached |= {(THEIRS, "2", seed): value for seed, value in enumerate(theirs)}
    digests = digests or {OURS: "ab", THEIRS: "xy"}
    return of(reached, planned, digests=lambda run: {"global": (digests[run.row] * 2)[run.seed]})


@pytest.mark.parametrize(("theirs", "margin", "wanted"), [
    ([0.7, 0.71, 0.69], 0.0, HOLDS), ([0.9, 0.91, 0.89], 0.0, DOES_NOT_HOLD),
    ([0.9, 0.91, 0.89], 0.1, NOT_DECIDED), ([0.9, 0.91, 0.89], 0.2, HOLDS),
    ([0.9, 0.7, 0.8], 0.0, NOT_DECIDED), ([0.7], 0.0, NOT_DECIDED),
    ([np.nan] * 3, 0.0, NOT_DECIDED),
])  # fmt: skip
def test_the_interval_over_seeds_decides_against_the_margin(theirs, margin, wanted):
    which = Comparison(OURS, THEIRS, "nih", margin=margin)
    [judged] = judge([claim(which)], two([0.8] * len(theirs), theirs))
    [found] = judged.findings
    assert judged.verdict == found.verdict == wanted
    assert found.difference == interval([0.8 - each for each in theirs if not np.isnan(each)])
    assert found.scenarios == ("2",)


@pytest.mark.parametrize(("digests", "theirs", "wanted"), [
    ("ab", [0.8, 0.7], HOLDS), ("ax", [0.8, 0.7], DOES_NOT_HOLD),
    ("ax", [0.8, np.nan], HOLDS),  # of the seed that is defined
    ("ab", [np.nan], NOT_DECIDED),
])  # fmt: skip
def test_where_models_should_be_the_same_their_digests_decide(digests, theirs, wanted):
    reached = two([0.8] * len(theirs), theirs, {OURS: "ab", THEIRS: digests})
    [judged] = judge([claim(Comparison(OURS, THEIRS, "nih", "same"))], reached)
    assert judged.verdict == wanted


@pytest.mark.parametrize(("verdicts", "wanted"), [
    ([HOLDS, HOLDS], HOLDS), ([HOLDS, NOT_DECIDED], NOT_DECIDED),
    ([HOLDS, NOT_DECIDED, DOES_NOT_HOLD], DOES_NOT_HOLD),
])  # fmt: skip
def test_a_claim_holds_where_all_comparisons_do(verdicts, wanted):
    findings = tuple(Finding(AHEAD, ("2",), None, each) for each in verdicts)
    assert Judged(claim(AHEAD), findings).verdict == wanted


def test_claims_are_judged_about_what_this_study_was_to_run():
    others = [Comparison(OURS, OTHERS, "nih"), Comparison(OURS, THEIRS, "mimic")]
    others.append(Comparison(OURS, THEIRS, "nih", scenarios=("4",)))
    own, other = claim(*others, AHEAD), claim(AHEAD, study="shared-classes")
    [found] = judge([other, own], two([0.8], [0.7]))
    assert found.claim is own
    assert [finding.comparison for finding in found.findings] == [AHEAD]
    assert judge([claim(*others)], two([0.8], [0.7])) == ()
    same = two([0.8], [0.7])
    theirs = same.study.model_copy(update={"name": "own", "claims": "shared-classes"})
    [found] = judge([other, own], replace(same, study=theirs))
    assert found.claim is other
    [found] = judge([claim(others[0])], two([0.8], [0.7], planned=[(OTHERS, "2", 0)]))
    assert found.findings[0].difference is None and found.verdict == NOT_DECIDED


def test_every_finding_is_a_line():
    other = Comparison(OURS, THEIRS, "nih", group="shared", model="nowhere", margin=0.1)
    found = judge([claim(AHEAD, other)], two([0.8, 0.8, 0.8], [0.7, 0.71, 0.69]))
    wanted = found[0].findings[0].difference
    first, second = table(found).to_dict("records")
    assert first == {
        "claim": "Ours is better", "source": "Table 1", "published": "0.8 and 0.7",
        "kind": "is ahead of", "better": "surgical-fedbn+", "worse": "vanilla-fedbn+", "model": "",
        "test": "nih", "group": "all", "other_test": "", "scenarios": "2", "margin": 0.0,
        "difference": wanted.mean,
        "low": wanted.low, "high": wanted.high, "seeds": 3, "verdict": HOLDS,
    }  # fmt: skip
    assert (second["model"], second["group"], second["margin"]) == ("nowhere", "shared", 0.1)
    assert np.isnan(second["difference"]) and second["seeds"] == 0
    # A number is one also where none has an interval, and columns stand without a claim.
    lines = table(judge([claim(AHEAD)], two([0.8], [0.7])))
    assert lines[["difference", "low", "high"]].dtypes.tolist() == [float] * 3
    assert np.isnan(lines["low"].iloc[0])
    assert table(()).empty and list(table(())) == list(lines)


def test_scenarios_are_those_that_were_to_be_run_with_all_rows_in_the_studys_order():
    reached = {(OURS, name, 0): 0.7 for name in ("10", "2", "4")} | {(THEIRS, "2", 0): 0.7}
    evidence = StudyEvidence(of(reached, planned=[(THEIRS, "10", 0)]))
    for which, wanted in {
        AHEAD: ["2", "10"],
        Comparison(OURS, THEIRS, "nih", "nearer"): [],
        Comparison(OURS, THEIRS, "mimic"): [],
        Comparison(OURS, THEIRS, "nih", scenarios=("10", "8")): ["10"],
    }.items():
        assert [scenario.name for scenario in evidence.scenarios(which)] == wanted


def numbers(evidence, which):
    return evidence.numbers(which, evidence.scenarios(which))


def test_every_seed_with_all_scenarios_has_a_number():
    ours = {(OURS, name, seed): 0.8 for name in ("2", "4") for seed in (1, 0, 2, 3)}
    theirs = {(THEIRS, name, seed): 0.7 - 0.1 * seed for name in ("2", "4") for seed in (0, 1)}
    partly = {(THEIRS, "2", 2): 0.7, (THEIRS, "4", 2): np.nan, (THEIRS, "2", 3): 0.7}
    found = numbers(StudyEvidence(of(ours | theirs | partly, [(THEIRS, "4", 3)])), AHEAD)
    assert found == {0: pytest.approx(0.1), 1: pytest.approx(0.2)}


def test_the_servers_model_is_compared_with_the_sites_own_of_the_same_row():
    models = {("nih", "nih"): {"Edema": 0.9}, ("server", "nih"): {"Edema": 0.55}}
    evidence = StudyEvidence(scored({run(LOCAL, "20"): models}, study="nih-chexpert"))
    which = Comparison(LOCAL, LOCAL, "nih", model="server")
    assert numbers(evidence, which) == {0: pytest.approx(0.35)}


def test_a_lead_may_be_compared_with_that_on_another_test_set():
    models = {
        run(row, "20"): {
            ("global", "nih"): {"Edema": nih},
            ("global", "chexpert"): {"Edema": other},
        }
        for row, nih, other in ((OURS, 0.8, 0.7), (THEIRS, 0.5, 0.6))
    }
    evidence = StudyEvidence(scored(models, study="nih-chexpert"))
    which = Comparison(OURS, THEIRS, "nih", "leads_more", other_test="chexpert")
    assert numbers(evidence, which) == {0: pytest.approx(0.3 - 0.1)}
    assert evidence.scenarios(replace(which, other_test="mimic")) == []


@pytest.mark.parametrize(("test", "group", "model", "wanted"), [
    ("nih", "all", None, 0.9),  # the tested site's own
    ("nih", "shared", None, 0.9),  # the other one does not count
    ("mimic", "shared", None, (0.7 + 0.5) / 2),  # of both sites
    ("mimic", "nih", None, 0.7),  # of the one that has the classes
    ("mimic", "shared", "chexpert", 0.5),  # of the one that is meant
    ("nih", "all", "server", 0.55), ("nih", "shared", "chexpert", 0.6),
    ("mimic", "all", None, None), ("mimic", "all", "nowhere", None),
    (EVERY_SITE, "shared", None, (0.9 + (0.7 + 0.5) / 2) / 2),  # over the test sets
    (EVERY_SITE, "elsewhere", None, None),
])  # fmt: skip
def test_which_of_a_rows_models_is_meant(test, group, model, wanted):
    nih = {"Edema": 0.9, "Mass": 0.9}
    own = {
        ("nih", "nih"): nih,
        ("nih", "mimic"): {"Edema": 0.7, "Mass": 0.7, "Fracture": LACKS},
        ("chexpert", "nih"): {"Edema": 0.6, "Mass": LACKS},
        ("chexpert", "mimic"): {"Edema": 0.5, "Mass": LACKS, "Fracture": 0.5},
        ("server", "nih"): {"Edema": 0.55, "Mass": 0.55},
        ("server", "mimic"): dict.fromkeys(["Edema", "Mass"], 0.55) | {"Fracture": LACKS},
    }
    ours = {("global", test): dict.fromkeys(own["nih", test], 1.0) for test in ("nih", "mimic")}
    reached = {run(OURS, "20"): ours, run(LOCAL, "20"): own}
    which = Comparison(OURS, LOCAL, test, group=group, model=model)
    found = numbers(StudyEvidence(scored(reached, study="nih-chexpert")), which)
    assert found == ({} if wanted is None else {0: pytest.approx(1 - wanted)})
