import itertools
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_audit.census.suppression import CellCount, suppress


def shared(*images, min_count=10, patients=None):
    """Cells a, b, c, ... that may be withheld in this order."""
    tallies = zip(images, patients or images, strict=True)
    cells = {chr(97 + i): CellCount(*tally) for i, tally in enumerate(tallies)}
    return tuple(suppress(cells, min_count, list(cells)).values())


@pytest.mark.parametrize(("counts", "seen"), [
    ((10, 500, 0), (10, 500, 0)),  # nothing small
    ((500, 3, 200), (None, None, 200)),  # a small count is never withheld alone
    ((3, 500, 200), (None, None, 200)),  # the sink itself is small: the next one goes with it
    ((1, 1, 500, 200), (None, None, None, 200)),  # too few together
    ((0, 3, 500, 200), (0, None, None, 200)),  # an empty cell is shared and hides nothing
    ((1, 11, 0), (None, None, None)),  # nothing could hide it
])  # fmt: skip
def test_small_counts_are_withheld_with_enough_others(counts, seen):
    assert shared(*counts) == seen
    # Many images of few patients are small.
    assert shared(500, 50, 200, patients=(100, 9, 80)) == (None, None, 200)
    assert shared(50, 500, patients=(9, 400)) == (None, None)


@pytest.mark.parametrize(("cells", "largest"), [(2, 16), (3, 15), (4, 12)])
def test_no_value_of_a_small_count_can_be_excluded(cells, largest):
    # Whoever knows the rule, the total and what is shared can try every table there is.
    min_count = 3
    tables = defaultdict(list)
    for counts in itertools.product(range(largest + 1), repeat=cells):
        if min_count <= sum(counts) <= largest:
            tables[sum(counts), shared(*counts, min_count=min_count)].append(counts)
    for (_, seen), possible in tables.items():
        for cell in (i for i, count in enumerate(seen) if count is None):
            values = {counts[cell] for counts in possible}
            assert min(values) >= min_count or values >= set(range(1, min_count)), (seen, cell)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(2, 12))
def test_total_less_what_is_shared_is_no_small_count(counts, min_count):
    seen = shared(*counts, min_count=min_count)
    hidden = [n for n, cell in zip(counts, seen, strict=True) if cell is None]
    assert all(cell is None or cell == 0 or cell >= min_count for cell in seen)
    if hidden and any(cell is not None for cell in seen):
        assert len(hidden) > 1
        assert sum(counts) - sum(cell or 0 for cell in seen) >= min_count * len(hidden)
