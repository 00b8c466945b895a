import pytest

import study_runs
from cxr_study.evaluation.seed_intervals import Interval
from cxr_study.jobs.methods import Row
from cxr_study.reports.study.findings import told
from cxr_study.studies.analysis.claims import HOLDS, Finding
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
        ({"group": "chexpert", "settings": ("2", "4")}, "NIH, classes of CheXpert; 2, 4"),
        ({"settings": ALL}, "NIH"),
    ],
)
def test_a_part_of_the_classes_or_of_the_studys_settings_is_named(which, where):
    assert of(**which).where == where


@pytest.mark.parametrize(
    ("better", "worse", "which", "against"),
    [
        (SURGICAL, Row("surgical", "fedbn"), {}, "against Surgical aggregation, fedbn"),
        (
            SURGICAL,
            Row("individual", "fedavg"),
            {"model": "chexpert"},
            "against Individual, model of CheXpert",
        ),
        (SURGICAL, VANILLA, {"margin": 0.03}, "against Vanilla FL (0.03 behind is enough)"),
        (
            Row("partial_loss", "fedbn+"),
            Row("partial_loss", "fedavg"),
            {},
            "FL with partial loss, fedbn+, against FL with partial loss, fedavg",
        ),
        (
            Row("surgical", "fedavg"),
            VANILLA,
            {},
            "Surgical aggregation, fedavg, against Vanilla FL",
        ),
        (VANILLA, SURGICAL, {}, "Vanilla FL, against Surgical aggregation"),
    ],
)
def test_who_is_compared_is_named_as_far_as_it_is_not_clear(better, worse, which, against):
    assert of(worse, better=better, **which).against == against


@pytest.mark.parametrize(
    ("difference", "number"), [(Interval(0.05, None, None, 1), "+0.050"), (None, "\N{EN DASH}")]
)
def test_one_seed_has_no_interval_and_none_no_number(difference, number):
    assert of(difference=difference).number == number
