import pytest

from cxr_studies.baseline import baseline_run
from cxr_study.jobs.methods import METHODS, TITLES, Row


def test_every_way_to_train_has_a_title_of_its_own():
    assert {*METHODS, *baseline_run.METHODS, "complete"} - {"surgical_he"} == set(TITLES)
    assert len(set(TITLES.values())) == len(TITLES)


@pytest.mark.parametrize(("row", "federated", "shown"), [
    (Row("surgical", "fedbn+ samples"), True, "fedbn+, samples"),
    (Row("individual", "fedavg slow"), False, "batch norm trained, slow"),
    (Row("vanilla", "fedavg"), True, "fedavg"),
    (Row("individual", "fedavg"), False, "batch norm trained"),
    (Row("complete", "fedbn+"), False, "batch norm frozen"),
])  # fmt: skip
def test_a_row_says_what_it_is(row, federated, shown):
    assert (row.federated, row.strategy_title) == (federated, shown)


def test_a_variant_stands_behind_its_strategy():
    row = Row("surgical", "fedbn+ samples")
    assert (row.job_strategy, row.variant) == ("fedbn+", "samples")
    assert (Row("surgical", "fedbn+").job_strategy, Row("surgical", "fedbn+").variant) == (
        "fedbn+",
        "",
    )


def test_names_differ_and_can_be_those_of_files():
    strategies = ("fedbn+", "fedbn+ samples", "fedbn+ positives")
    names = [Row(method, how).name for method in TITLES for how in strategies]
    assert len(set(names)) == len(names)
    assert not any(set(name) & set("/ \\:") for name in names)
