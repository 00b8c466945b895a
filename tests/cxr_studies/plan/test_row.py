import pytest

from cxr_studies.baseline import baseline_run
from cxr_studies.plan.row import BATCH_NORM, TITLES, Row
from cxr_study.jobs.methods import METHODS
from surgical_aggregation.aggregation.strategy import STRATEGIES


def test_every_way_to_train_has_a_title_of_its_own():
    assert {*METHODS, *baseline_run.METHODS, "complete"} - {"surgical_he"} == set(TITLES)
    assert len(set(TITLES.values())) == len(TITLES)


@pytest.mark.parametrize(("row", "federated", "parts", "shown"), [
    (Row("surgical", "fedbn+ samples"), True, ("fedbn+", "samples"), "fedbn+, samples"),
    (Row("individual", "fedavg slow"), False, ("fedavg", "slow"), "batch norm trained, slow"),
    (Row("vanilla", "fedavg"), True, ("fedavg", ""), "fedavg"),
    (Row("individual", "fedavg"), False, ("fedavg", ""), "batch norm trained"),
    (Row("complete", "fedbn+"), False, ("fedbn+", ""), "batch norm frozen"),
])  # fmt: skip
def test_a_row_says_what_it_is(row, federated, parts, shown):
    assert (row.federated, row.strategy_title) == (federated, shown)
    assert (row.job_strategy, row.variant) == parts  # which stands behind its strategy


def test_names_differ_and_can_be_those_of_files():
    strategies = ("fedbn+", "fedbn+ samples", "fedbn+ positives")
    names = [Row(method, how).name for method in TITLES for how in strategies]
    assert len(set(names)) == len(names)
    assert not any(set(name) & set("/ \\:") for name in names)


@pytest.mark.parametrize(("row", "words"), [
    (Row("surgical", "fedavg"), "batch norm averaged"),
    (Row("surgical", "fedbn"), "batch norm local"),
    (Row("vanilla", "fedbn+ samples"), "batch norm frozen, samples"),
    (Row("surgical", "fixbn"), "batch norm statistics frozen"),
    (Row("individual", "fedavg"), "batch norm trained"),
    (Row("surgical", "silobn slow"), "own strategy silobn, slow"),
])  # fmt: skip
def test_prose_names_what_happens_to_batch_norm(row, words):
    assert row.batch_norm == words


def test_every_strategy_has_words():
    assert set(BATCH_NORM) == set(STRATEGIES)
