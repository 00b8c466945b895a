"""What a row reaches on a test set, be it with a global model or with models of sites' own."""

import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.values import in_setting, models_tested

SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Mass"]}


@pytest.mark.parametrize(
    ("models", "test", "counts"),
    [
        (("global",), "nih", ["global"]),
        (("nih", "chexpert"), "nih", ["nih"]),
        (("nih", "chexpert"), "mimic", ["nih", "chexpert"]),
        (("nih-1", "nih-2"), "nih", ["nih-1", "nih-2"]),
    ],
)
def test_a_sites_own_model_counts_on_its_test_set_and_all_do_on_others(models, test, counts):
    assert models_tested(models, test) == counts


def test_the_mean_over_all_classes_is_that_of_the_models_that_count(made_up):
    row = Row("personalised", "fedbn+")
    made_up.finish(
        {
            ("nih", "nih"): {"Edema": 0.9, "Mass": 0.8},
            ("chexpert", "nih"): {"Edema": 0.5, "Mass": 0.5},
            ("nih", "mimic"): {"Edema": 0.9, "Mass": 0.7},
            ("chexpert", "mimic"): {"Edema": 0.6, "Mass": 0.6},
        },
        method="personalised",
        sites=SITES,
    )
    made_up.finish({("global", "nih"): {"Edema": 1.0, "Mass": 0.5}}, sites=SITES)
    results = made_up.results()
    assert in_setting(results, row, "nih", "2").value == pytest.approx(0.85)
    assert in_setting(results, row, "mimic", "2").value == pytest.approx(0.7)
    found = in_setting(results, Row("surgical", "fedbn+"), "nih", "2")
    assert found.value == pytest.approx(0.75)
    assert in_setting(results, row, "nih", "4").value is None
