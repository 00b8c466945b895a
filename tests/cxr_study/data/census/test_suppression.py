import itertools
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_study.data.census.suppression import CellCount, suppress


def shared(*images, min_count=10, patients=None):
    """Cells a, b, c, ... that may be withheld in this order."""
    tallies = zip(images, patients or images, strict=True)
    cells = {chr(97 + i): CellCount(*tally) for i, tally in enumerate(tallies)}
    return tuple(suppress(cells, min_count, list(cells)).values())


def test_nothing_small_nothing_withheld():
    assert shared(10, 500, 0) == (10, 500, 0)


def test_a_small_count_is_never_withheld_alone():
    assert shared(500, 3, 200) == (None, None, 200)


def test_where_the_sink_itself_is_small_the_next_one_goes_with_it():
    assert shared(3, 500, 200) == (None, None, 200)


def test_small_counts_that_are_too_few_together_take_a_large_one_along():
    assert shared(1, 1, 500, 200) == (None, None, None, 200)


def test_an_empty_cell_is_shared_and_hides_nothing():
    assert shared(0, 3, 500, 200) == (0, None, None, 200)


def test_many_images_of_few_patients_are_small():
    assert shared(500, 50, 200, patients=(100, 9, 80)) == (None, None, 200)


def test_nor_are_they_withheld_alone():
    assert shared(50, 500, patients=(9, 400)) == (None, None)


def test_where_nothing_could_hide_it_nothing_is_shared():
    assert shared(1, 11, 0) == (None, None, None)


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
