"""Damaged tables: every reader gives the undamaged table, or refuses by file, line and column."""

import csv
import gzip
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxr_study.common.errors import InputError
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import read
from downloads import NAN, OFFICIAL, cells_of
from profiles import examples

GARBAGE = ["☠", "#REF!", "1,5", "NULL"]

every_data_set = pytest.mark.parametrize("official", OFFICIAL.values(), ids=OFFICIAL)


def fuzz(number):
    """Settings for so many examples, the same in every run."""
    return settings(max_examples=examples(number), derandomize=True)


@pytest.fixture(scope="module")
def read_damaged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")

    def read_files(official, damaged, content, zipped=False):
        """Read a download of which one file has another content; an error names a file."""
        paths = []
        for number, text in enumerate(official.files):
            paths.append(folder / f"{'lm'[number]}.csv{'.gz' * (zipped and number == damaged)}")
            paths[-1].write_bytes(content if number == damaged else text.encode())
        try:
            return read(official.dataset, paths[:1], *paths[1:])
        except InputError as error:
            assert re.search(r"[lm]\.csv", str(error))
            raise

    return read_files


def written(grid):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(grid)
    return out.getvalue().encode()


def assert_same(got, want, changed=()):
    """The tables agree, but for fields that may have changed: pairs of row and column."""
    assert (list(got.columns), len(got)) == (list(want.columns), len(want))
    for row, column in {(row, column) for row in range(len(got)) for column in got} - set(changed):
        left, right = got.at[row, column], want.at[row, column]
        assert left == right or (left != left and right != right), (row, column, left, right)


def drawn_cell(official, draw):
    """Number of a file, its cells, and row and column of one of them below the header."""
    damaged = draw(st.integers(0, len(official.files) - 1))
    grid = cells_of(official.files[damaged])
    row, column = draw(st.integers(1, len(grid) - 1)), draw(st.integers(0, len(grid[0]) - 1))
    return damaged, grid, row, column


@every_data_set
@fuzz(120)
@given(data=st.data())
def test_a_damaged_cell_is_refused_or_changes_its_own_field_only(official, read_damaged, data):
    damaged, grid, row, column = drawn_cell(official, data.draw)
    name, text = grid[0][column], data.draw(st.sampled_from(["", *GARBAGE]))
    grid[row][column] = text
    fields = official.free.get(name, official.blank.get(name) if not text else None)
    try:
        got = read_damaged(official, damaged, written(grid))
    except InputError as error:
        assert re.search(r"[lm]\.csv, line \d+, column '.+': ", str(error))
        assert fields != set()
    else:
        assert fields is not None, f"{text!r} in {name} was taken"
        image = (row - 1) // official.lines
        assert_same(got, official.table, [(image, field) for field in fields])


@every_data_set
@fuzz(120)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_the_rows_left_are_right(official, read_damaged, data):
    draw = data.draw
    damaged = draw(st.integers(0, len(official.files) - 1))
    damage = draw(st.sampled_from(["cut", "nul", "latin", "empty", "cut zip", "flip zip"]))
    content, zipped = official.files[damaged].encode(), "zip" in damage
    if zipped:
        content = gzip.compress(content, mtime=0)
    at = draw(st.integers(0, len(content) - 1))
    before, after = content[:at], content[at:]
    content = {
        "cut": before, "nul": before + b"\0" + after, "latin": before + b"\xe9" + after,
        "empty": b"", "cut zip": before,
        "flip zip": before + bytes([after[0] ^ 1 << draw(st.integers(0, 7))]) + after[1:],
    }[damage]  # fmt: skip
    try:
        got = read_damaged(official, damaged, content, zipped)
    except InputError:
        return
    assert damage in ("cut", "flip zip")
    want = official.table.iloc[: len(got)]
    for name in set(want) - set(got):  # PadChest: no list names the finding any more
        assert not want[name].any()
    if official.dataset == "mimic":  # studies without labels
        unlabelled = got[list(CHEXPERT_CLASSES)].isna().all(axis=1)
        want.loc[unlabelled, list(CHEXPERT_CLASSES)] = NAN
    assert_same(got, want[list(got)])
    if damage == "flip zip":
        assert len(got) == len(official.table)
