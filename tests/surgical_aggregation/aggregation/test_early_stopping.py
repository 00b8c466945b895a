import pytest

from surgical_aggregation.aggregation.early_stopping import should_stop


@pytest.mark.parametrize(("round_", "best", "patience", "lost", "stops"), [
    (5, 3, 2, 0, True),
    (4, 3, 2, 0, False),
    (9, 3, 2, 0, True),
    (5, 3, 2, 1, False),
    (6, 3, 2, 1, True),
    (0, None, 1, 0, False),
    (9, None, 1, 0, False),
    (9, 3, 0, 0, False),
], ids=["patience used up", "not yet", "later", "a round that could not be compared",
        "one more instead", "no model yet", "no best model", "no patience"])  # fmt: skip
def test_stops_after_patience_rounds_without_a_better_model(round_, best, patience, lost, stops):
    assert should_stop(round_, best, patience, not_compared=lost) is stops
