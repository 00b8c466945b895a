import pytest

from cxr_study.jobs import job_templates
from cxr_study.jobs.methods import HEAD_WEIGHTED, TITLES, Row
from cxr_study.runs import baseline_run


def test_every_way_to_train_has_a_title_of_its_own():
    assert {*job_templates.METHODS, *baseline_run.METHODS, "complete"} - {"surgical_he"} == set(
        TITLES
    )
    assert len(set(TITLES.values())) == len(TITLES)


@pytest.mark.parametrize(
    ("row", "federated", "variant"),
    [
        (Row("surgical", "fedbn+-samples"), True, "fedbn+, head by samples"),
        (Row("vanilla", "fedavg"), True, "fedavg"),
        (Row("individual", "fedavg"), False, "batch norm trained"),
        (Row("complete", "fedbn+"), False, "batch norm frozen"),
    ],
)
def test_a_row_says_what_it_is(row, federated, variant):
    assert (row.federated, row.variant) == (federated, variant)


def test_names_differ_and_can_be_those_of_files():
    strategies = ("fedbn+", *HEAD_WEIGHTED)
    names = [Row(method, how).name for method in TITLES for how in strategies]
    assert len(set(names)) == len(names)
    assert not any(set(name) & set("/ \\:") for name in names)
