import numpy as np
import pytest

from cxr_study.data.images.image_files import Source
from cxr_study.data.images.image_journal import CONSTANT, OK, UNREADABLE, ImageJournal, Known


@pytest.fixture
def journal(tmp_path):
    return ImageJournal(tmp_path, 2)


def ok(name, value):
    known = Known((3, 5, 7), OK, hash="h")
    return Source(name, "", name, None), known, np.full((2, 2), value, np.uint8)


def bad(name, file, *known):
    return Source(name, "", file, None), Known((9, 8, 7), *known), None


def values(journal):
    """File to the value of its pixels."""
    return {file: int(journal.pixels()[known.row][0, 0]) for file, known in journal.read().items()}


def test_what_was_added_is_known_and_can_be_read_by_people(journal, tmp_path):
    assert (journal.read(), journal.pixels().shape) == ({}, (0, 2, 2))
    journal.append([ok("a", 1), bad("b", "0/b", UNREADABLE, "it is cut off")])
    journal.append([bad("c", "c", CONSTANT), ok("d", 4)])
    assert journal.read() == {
        "a": ((3, 5, 7), OK, "", "h", "", "", 0),
        "0/b": ((9, 8, 7), UNREADABLE, "it is cut off", "", "", "", -1),
        "c": ((9, 8, 7), CONSTANT, "", "", "", "", -1),
        "d": ((3, 5, 7), OK, "", "h", "", "", 1),
    }
    assert journal.pixels()[:, 1, 1].tolist() == [1, 4]
    with pytest.raises(ValueError, match="read-only"):
        journal.pixels()[0] = 2
    assert (tmp_path / "index.jsonl").read_text().splitlines()[:2] == [
        '["image", "file", "bytes", "mtime_ns", "ctime_ns", "status", "detail", "hash", "notes", '
        '"view", "row"]',
        '["a", "a", 3, 5, 7, "ok", "", "h", "", "", 0]',
    ]


def test_the_last_word_on_a_file_counts_rows_stay_and_every_name_comes_back(journal):
    journal.append([ok("a", 1), ok("b", 2)])
    opened = journal.pixels()
    journal.append([ok("a", 3)])
    assert (values(journal), opened[:, 0, 0].tolist()) == ({"b": 2, "a": 3}, [1, 2])
    names = ["0/ü ö.png", 'a,"b"', "NA", "", "a\nb", "a\rb", "\udcff", " a "]
    journal.append(ok(name, i) for i, name in enumerate(names, start=4))
    assert values(journal) == {"b": 2, "a": 3} | {name: i for i, name in enumerate(names, start=4)}


def test_wherever_the_index_is_cut_only_whole_lines_are_believed(journal, tmp_path):
    journal.append([ok("a", 1)] * 12)
    journal.append([ok("b", 2)])  # row 12: cut to 1 it would be another image's
    index = tmp_path / "index.jsonl"
    data = index.read_bytes()
    for cut in range(data.rfind(b'\n["b"') + 1, len(data)):
        index.write_bytes(data[:cut])
        assert values(journal) == {"a": 1}
        journal.repair()
        journal.append([ok("b", 2)])
        assert (values(journal), index.read_text().count('["b"')) == ({"a": 1, "b": 2}, 1)


def test_a_row_that_is_not_whole_is_not_believed_and_does_not_shift_the_next(journal, tmp_path):
    journal.append([ok("a", 1), ok("b", 2)])
    pixels = tmp_path / "pixels.u8"
    pixels.write_bytes(pixels.read_bytes()[:-1])
    assert values(journal) == {"a": 1}
    journal.repair()
    journal.append([ok("c", 3)])
    assert values(journal) | {"b": None} == {"a": 1, "b": None, "c": 3}
    pixels.write_bytes(pixels.read_bytes() + b"\x09" * 7)
    journal.repair()
    journal.append([ok("b", 2)])
    assert values(journal) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize("junk", [
    *("\0" * 50, "7", '"', '["a"]'), '["a", "a", 3, 5, "ok", "", "h", -1]',
    '["a", "a", 3, 5, "ok", "", "h", null]', '["a", "a", 3, 5, "ok", "", "h", 99]',
    '["a", "a", 3, 5, "constant", "", "", 0]',
])  # fmt: skip
def test_lines_that_make_no_sense_are_skipped(journal, tmp_path, junk):
    journal.append([ok("a", 1)])
    with (tmp_path / "index.jsonl").open("a") as file:
        file.write(f"{junk}\n")
    journal.repair()
    journal.append([ok("b", 2)])
    assert values(journal) == {"a": 1, "b": 2}
