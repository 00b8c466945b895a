import pytest

from cxr_studies.baseline import baseline_run
from cxr_studies.plan.row import BATCH_NORM, TITLES, Row
from cxr_study.jobs.methods import METHODS
from surgical_aggregation.aggregation.batch_norm_strategy import STRATEGIES


def test_every_way_to_train_has_a_title_of_its_own_and_every_strategy_words():
    assert {*METHODS, *baseline_run.METHODS, "complete"} - {"surgical_he"} == set(TITLES)
    assert len(set(TITLES.values())) == len(TITLES)
    assert set(BATCH_NORM) == set(STRATEGIES)


@pytest.mark.parametrize(("method", "strategy", "variant", "words"), [
    ("surgical", "fedbn+", "samples", "batch norm frozen, samples"),
    ("vanilla", "fedavg", "", "batch norm averaged"), ("surgical", "fedbn", "", "batch norm local"),
    ("surgical", "fixbn", "", "batch norm statistics frozen"),
    ("surgical", "silobn", "slow", "own strategy silobn, slow"),
    ("individual", "fedavg", "slow", "batch norm trained, slow"),
    ("complete", "fedbn+", "", "batch norm frozen"),
])  # fmt: skip
def test_a_row_says_what_it_is_and_prose_what_of_batch_norm(method, strategy, variant, words):
    row = Row(method, f"{strategy} {variant}".strip())
    assert (row.job_strategy, row.variant, row.batch_norm) == (strategy, variant, words)
    assert row.federated == (method in ("surgical", "vanilla"))
    in_tables = strategy + f", {variant}" * bool(variant) if row.federated else words
    assert row.strategy_title == in_tables


def test_names_differ_and_can_be_those_of_files():
    strategies = ("fedbn+", "fedbn+ samples", "fedbn+ positives")
    names = [Row(method, how).name for method in TITLES for how in strategies]
    assert len(set(names)) == len(names)
    assert not any(set(name) & set("/ \\:") for name in names)
