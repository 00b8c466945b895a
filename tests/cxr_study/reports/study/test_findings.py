import pytest

import study_runs
from cxr_study.evaluation.seed_intervals import Interval
from cxr_study.jobs.methods import Row
from cxr_study.reports.study.findings import told
from cxr_study.studies.analysis.claims import HOLDS, NOT_DECIDED, Finding
from cxr_study.studies.papers.claimed_numbers import Comparison
from study_scores import results

SURGICAL, VANILLA = Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")
FOUND = Interval(0.05, 0.02, 0.08, 3)
RESULTS = results({study_runs.run(): {("global", "nih"): {"Edema": 0.8}}})
ALL = tuple(setting.name for setting in RESULTS.study.settings)


def of(worse=VANILLA, difference=FOUND, better=SURGICAL, settings=ALL, **which):
    comparison = Comparison(better, worse, "nih", **which)
    return told(Finding(comparison, settings, difference, HOLDS), RESULTS)


def test_where_against_whom_how_much_and_the_verdict():
    found = of()
    assert (found.where, found.against, found.verdict) == ("NIH", "against Vanilla FL", HOLDS)
    assert found.number == "+0.050 (+0.020 to +0.080)"


@pytest.mark.parametrize(
    ("which", "where"),
    [
        ({"group": "shared"}, "NIH, shared classes"),
        ({"settings": ("2", "4")}, "NIH; 2, 4"),
        ({"group": "chexpert", "settings": ("2", "4")}, "NIH, classes of CheXpert; 2, 4"),
        ({"settings": ALL}, "NIH"),
    ],
)
def test_a_part_of_the_classes_or_of_the_studys_settings_is_named(which, where):
    assert of(**which).where == where


def test_a_strategy_is_named_where_both_rows_are_of_one_method():
    assert of(Row("surgical", "fedbn")).against == "against Surgical aggregation, fedbn"


def test_a_sites_model_is_named():
    assert of(Row("individual", "fedavg"), model="chexpert").against == (
        "against Individual, model of CheXpert"
    )


@pytest.mark.parametrize(
    ("better", "worse", "told"),
    [
        (
            Row("partial_loss", "fedbn+"),
            Row("partial_loss", "fedavg"),
            "FL with partial loss, fedbn+, against FL with partial loss, fedavg",
        ),
        (Row("surgical", "fedavg"), VANILLA, "Surgical aggregation, fedavg, against Vanilla FL"),
        (VANILLA, SURGICAL, "Vanilla FL, against Surgical aggregation"),
    ],
)
def test_the_better_row_is_named_where_it_is_not_the_reference(better, worse, told):
    assert of(worse, better=better).against == told


def test_a_margin_is_told_and_not_in_the_number():
    found = of(margin=0.03)
    assert found.against == "against Vanilla FL (0.03 behind is enough)"
    assert found.number == "+0.050 (+0.020 to +0.080)"


def test_one_seed_has_no_interval_and_none_no_number():
    assert of(difference=Interval(0.05, None, None, 1)).number == "+0.050"
    nothing = Finding(Comparison(SURGICAL, VANILLA, "nih"), ("2",), None, NOT_DECIDED)
    assert told(nothing, RESULTS).number == "\N{EN DASH}"
