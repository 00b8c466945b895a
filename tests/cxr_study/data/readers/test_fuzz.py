"""Damaged tables: every reader gives the undamaged table, or refuses by file, line and column."""

import csv
import gzip
import io
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import read
from downloads import NAN, OFFICIAL, cells_of
from profiles import examples

GARBAGE = ["☠", "#REF!", "1,5", "NULL"]


@pytest.fixture(scope="module")
def read_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")

    def read_bytes(dataset, files, zipped):
        """Read the labels and the metadata, if any, of which one may be zipped."""
        paths = [folder / f"{name}.csv{'.gz' * z}" for name, z in zip("lm", zipped, strict=False)]
        for path, content in zip(paths, files, strict=False):
            path.write_bytes(content)
        return read(dataset, paths[:1], paths[1] if len(files) > 1 else None)

    return read_bytes


def text_of(grid, raw=None):
    """The csv; `raw` is the position of a cell to be written with a quote in front."""
    out = io.StringIO()
    for i, row in enumerate(grid):
        cells = [f'"{cell}"' if "," in cell else cell for cell in row]
        if raw is not None and raw[0] == i:
            cells[raw[1]] = '"' + cells[raw[1]]
        out.write(",".join(cells) + "\n")
    return out.getvalue()


def assert_same(got, want, changed=()):
    """The tables agree, but for fields that may have changed: pairs of row and column."""
    assert list(got.columns) == list(want.columns)
    assert len(got) == len(want)
    for row, column in {(row, column) for row in range(len(got)) for column in got} - set(changed):
        left, right = got.at[row, column], want.at[row, column]
        assert left == right or (left != left and right != right), (row, column, left, right)


def assert_names_file(error, cell=False):
    assert re.search(r"[lm]\.csv", str(error))
    if cell:
        assert re.search(r"[lm]\.csv(\.gz)?, line \d+, column '.+': ", str(error))


def fuzz(number):
    """Settings for so many examples, the same in every run."""
    fixtures = HealthCheck.function_scoped_fixture
    return settings(
        max_examples=examples(number), derandomize=True, suppress_health_check=[fixtures]
    )


every_data_set = pytest.mark.parametrize("official", OFFICIAL.values(), ids=OFFICIAL)


def drawn_cell(official, draw):
    """Number of a file, its cells, and row and column of one of them below the header."""
    damaged = draw(st.integers(0, len(official.files) - 1))
    grid = cells_of(official.files[damaged])
    row, column = draw(st.integers(1, len(grid) - 1)), draw(st.integers(0, len(grid[0]) - 1))
    return damaged, grid, row, column


def with_file(official, damaged, text):
    """The files of a download, one of them with another text."""
    files = [text.encode() for text in official.files]
    files[damaged] = text.encode()
    return files


@every_data_set
@fuzz(40)
@given(data=st.data())
def test_harmless_differences_between_files_change_nothing(official, read_files, data):
    draw, files, zipped = data.draw, [], []
    for text in official.files:
        grid = cells_of(text)
        if official.needed is None:
            for name in draw(st.lists(st.sampled_from(["extra", "Patient", "0"]), unique=True)):
                grid = [[*row, f"{name} {i}" if i else name] for i, row in enumerate(grid)]
            order = draw(st.permutations(range(len(grid[0]))))
            grid = [[row[column] for column in order] for row in grid]
        pad = draw(st.sampled_from(["", " ", "\t"]))
        out = io.StringIO()
        csv.writer(
            out,
            quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
            lineterminator=draw(st.sampled_from(["\n", "\r\n"])) * draw(st.integers(1, 2)),
        ).writerows([[pad + cell + pad for cell in row] for row in grid])
        content = (draw(st.sampled_from(["", "\ufeff"])) + out.getvalue()).encode()
        if draw(st.booleans()):
            content = content.rstrip(b"\r\n") if not content.rstrip().endswith(b",") else content
        zipped.append(draw(st.booleans()))
        files.append(gzip.compress(content) if zipped[-1] else content)
    assert_same(read_files(official.dataset, files, zipped), official.table)


@every_data_set
@fuzz(120)
@given(data=st.data())
def test_a_damaged_cell_is_refused_or_changes_its_own_field_only(official, read_files, data):
    damaged, grid, row, column = drawn_cell(official, data.draw)
    name, text = grid[0][column], data.draw(st.sampled_from(["", *GARBAGE]))
    grid[row][column] = text
    files = with_file(official, damaged, text_of(grid))
    fields = official.free.get(name, official.blank.get(name) if not text else None)
    try:
        got = read_files(official.dataset, files, [False, False])
    except TableError as error:
        assert_names_file(error, cell=True)
        assert fields != set()
    else:
        assert fields is not None, f"{text!r} in {name} was taken"
        image = (row - 1) // official.lines
        assert_same(got, official.table, [(image, field) for field in fields])


@every_data_set
@fuzz(80)
@given(data=st.data())
def test_a_damaged_shape_is_refused(official, read_files, data):
    damaged, grid, row, column = drawn_cell(official, data.draw)
    name, raw = grid[0][column], None
    kinds = ["drop", "rename", "twice", "long", "short", "again", "quote", "header"]
    damage = data.draw(st.sampled_from(kinds))
    if damage == "drop":
        grid = [cells[:column] + cells[column + 1 :] for cells in grid]
    elif damage == "rename":
        grid[0][column] = name + "☠"
    elif damage == "twice":
        grid = [[*cells, cells[column]] for cells in grid]
    elif damage == "long":
        grid[row].insert(column, data.draw(st.sampled_from(["", "1", *GARBAGE])))
    elif damage == "short":
        del grid[row][column]
    elif damage == "again":
        grid.append(grid[row])
    elif damage == "quote":
        raw = (row, column)
    else:
        del grid[0]
    files = with_file(official, damaged, text_of(grid, raw))
    try:
        got = read_files(official.dataset, files, [False, False])
    except TableError as error:
        assert_names_file(error)
    else:
        fields = official.free.get(name, official.blank.get(name, {name}))
        assert damage in (["drop", "rename", "twice"] if not fields else ["drop", "rename"])
        assert name not in official.needed if official.needed else not fields
        kept = [column for column in official.table if column not in fields]
        assert_same(got[kept], official.table[kept])


@every_data_set
@fuzz(120)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_the_rows_left_are_right(official, read_files, data):
    draw = data.draw
    damaged = draw(st.integers(0, len(official.files) - 1))
    files, zipped = [text.encode() for text in official.files], [False, False]
    damage = draw(st.sampled_from(["cut", "nul", "latin", "empty", "cut zip", "flip zip"]))
    content = files[damaged]
    if "zip" in damage:
        content, zipped[damaged] = gzip.compress(content, mtime=0), True
    at = draw(st.integers(0, len(content) - 1))
    before, after = content[:at], content[at:]
    files[damaged] = {
        "cut": before,
        "nul": before + b"\0" + after,
        "latin": before + b"\xe9" + after,
        "empty": b"",
        "cut zip": before,
        "flip zip": before + bytes([after[0] ^ 1 << draw(st.integers(0, 7))]) + after[1:],
    }[damage]
    try:
        got = read_files(official.dataset, files, zipped)
    except TableError as error:
        assert_names_file(error)
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
