import dataclasses
import itertools
import json
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_audit.census import shareable_census as module
from cxr_audit.census.census import OUTCOMES, STATES, CellCount
from cxr_audit.census.shareable_census import CensusError, SharedClass, read_shared, share


class TestShare:
    def test_large_counts_are_shared_as_they_are_and_nothing_else(self, shared):
        assert (shared.images, shared.patients) == (600, 500)
        assert shared.views["PA"] == 300 and shared.sex["unknown"] == 100
        assert shared.classes["Mass"].read["uncertain"] == 300
        assert shared.image_hashes is None
        assert set(shared.to_json()) == {
            "format", "site", "min_count", "images", "patients", "blank", "views", "sex", "age",
            "classes", "intensity", "image_hashes",
        }  # fmt: skip

    def test_every_table_is_suppressed(self, large_census):
        shared = share(large_census(4), 10, None)  # 24 images
        small = {"views": shared.views, "sex": shared.sex, "age": shared.age}
        small |= {name: entry.read for name, entry in shared.classes.items()}
        for name, cells in small.items():
            assert None in cells.values(), name
            assert not [n for n in cells.values() if n and n < 10], name

    def test_what_is_unknown_or_of_few_stays_at_the_site(self, census, large_census):
        unknown = dataclasses.replace(large_census(), patients_known=False)
        assert share(unknown, 10, None).patients is None
        with pytest.raises(CensusError, match="here shares nothing: it has 5 patients"):
            share(census, 10, None)
        with pytest.raises(CensusError, match="needs to be 2 or more; got 1"):
            share(census, 1, None)


def test_outcomes_follow_from_labels_as_read_and_the_policy(census, large_census):
    shared = share(large_census(1000), 10, None)
    for name, entry in census.classes.items():
        assert module.outcomes(shared, name) == {k: 1000 * entry.labels[k] for k in OUTCOMES}


@pytest.mark.parametrize(("read", "policy", "blank", "becomes", "share_of_positives"), [
    # Withheld labels that become the same are the rest; others stay withheld.
    ({"positive": 50, "negative": None, "uncertain": None}, "zeros", "negative", [50, 550, 0, 0],
     50 / 600),
    ({"positive": None, "negative": None}, "zeros", "negative", [None, None, 0, 0], None),
    ({"uncertain": 600}, "zeros", "negative", [0, 600, 0, 0], 0),
    ({"uncertain": 600}, "ones", "negative", [600, 0, 0, 0], 1),
    ({"uncertain": 600}, "ignore", "negative", [0, 0, 0, 600], None),
    ({"uncertain": 600}, "smooth-zeros", "negative", [0, 0, 600, 0], 0),
    ({"uncertain": 600}, "smooth-ones", "negative", [0, 0, 600, 0], 0),
    ({"positive": 60, "negative": 60, "not labelled": 480}, "zeros", "negative", [60, 60, 0, 480],
     0.5),
    ({"positive": 120, "blank": 480}, "zeros", "not labelled", [120, 0, 0, 480], 1),
])  # fmt: skip
def test_labels_follow_policy_and_blank(shared, read, policy, blank, becomes, share_of_positives):
    classes = {"Edema": SharedClass(policy, dict.fromkeys(STATES, 0) | read)}
    site = dataclasses.replace(shared, blank=blank, images=600, classes=classes)
    assert module.outcomes(site, "Edema") == dict(zip(OUTCOMES, becomes, strict=True))
    assert module.prevalence(site, "Edema") == share_of_positives


@pytest.mark.parametrize(("change", "message"), [
    (lambda v: v.update(format=2), "needs a shared census, with 'format': 1"),
    (lambda v: v.pop("site"), "needs key 'site'; has .*images"),
    (lambda v: v.update(images=-1), "key 'images' needs a number of 0 or more; got -1"),
    (lambda v: v["sex"].pop("F"), "key 'sex' needs the cells F, M, unknown"),
    (lambda v: v["classes"].update(Edema=3), "key 'Edema' needs lines 'key: value'; got 3"),
    (lambda v: v["classes"].update({f"Class {n}": v["classes"]["Edema"] for n in range(1000)}),
     "key 'classes' needs at most 1000 classes; got 1002"),
    (lambda v: v["intensity"].pop(), "key 'intensity' needs 32 numbers; got 31"),
])  # fmt: skip
def test_what_is_written_is_read_again_and_other_forms_refused(shared, tmp_path, change, message):
    path = tmp_path / "here.json"
    earlier = {"features": {"images": 64}}  # which an earlier version shared
    path.write_text(json.dumps(shared.to_json() | earlier))
    assert read_shared(path).to_json() == shared.to_json()
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    with pytest.raises(CensusError, match=rf"here\.json: .*{message}"):
        read_shared(path)
    for text in ("{", "[" * 100_000, f'{{"format": {"9" * 6000}}}'):
        path.write_text(text)
        with pytest.raises(CensusError, match=r"here\.json cannot be read as a shared census"):
            read_shared(path)


def suppressed(*images, min_count=10, patients=None):
    """Cells a, b, c, ... that may be withheld in this order."""
    tallies = zip(images, patients or images, strict=True)
    cells = {chr(97 + i): CellCount(*tally) for i, tally in enumerate(tallies)}
    return tuple(module.suppress(cells, min_count, list(cells)).values())


@pytest.mark.parametrize(("counts", "seen"), [
    ((10, 500, 0), (10, 500, 0)),  # nothing small
    ((500, 3, 200), (None, None, 200)),  # a small count is never withheld alone
    ((3, 500, 200), (None, None, 200)),  # the sink itself is small: the next one goes with it
    ((1, 1, 500, 200), (None, None, None, 200)),  # too few together
    ((0, 3, 500, 200), (0, None, None, 200)),  # an empty cell is shared and hides nothing
    ((1, 11, 0), (None, None, None)),  # nothing could hide it
])  # fmt: skip
def test_small_counts_are_withheld_with_enough_others(counts, seen):
    assert suppressed(*counts) == seen
    # Many images of few patients are small.
    assert suppressed(500, 50, 200, patients=(100, 9, 80)) == (None, None, 200)
    assert suppressed(50, 500, patients=(9, 400)) == (None, None)


@pytest.mark.parametrize(("cells", "largest"), [(2, 16), (3, 15), (4, 12)])
def test_no_value_of_a_small_count_can_be_excluded(cells, largest):
    # Whoever knows the rule, the total and what is shared can try every table there is.
    min_count = 3
    tables = defaultdict(list)
    for counts in itertools.product(range(largest + 1), repeat=cells):
        if min_count <= sum(counts) <= largest:
            tables[sum(counts), suppressed(*counts, min_count=min_count)].append(counts)
    for (_, seen), possible in tables.items():
        for cell in (i for i, count in enumerate(seen) if count is None):
            values = {counts[cell] for counts in possible}
            assert min(values) >= min_count or values >= set(range(1, min_count)), (seen, cell)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(2, 12))
def test_total_less_what_is_shared_is_no_small_count(counts, min_count):
    seen = suppressed(*counts, min_count=min_count)
    hidden = [n for n, cell in zip(counts, seen, strict=True) if cell is None]
    assert all(cell is None or cell == 0 or cell >= min_count for cell in seen)
    if hidden and any(cell is not None for cell in seen):
        assert len(hidden) > 1
        assert sum(counts) - sum(cell or 0 for cell in seen) >= min_count * len(hidden)
