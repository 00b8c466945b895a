import pytest

from cxr_study import flare_log
from surgical_aggregation.executor import CANNOT_TAKE_PART

LOG = """2026-01-02 03:04:05,006 - A - INFO - fine
2026-01-02 03:04:06,006 - B - ERROR - [identity=a] - first
2026-01-02 03:04:07,006 - C - ERROR - Traceback (most recent call last):
  File "x.py", line 1, in f
    self.work()
    ^^^^^^^^^^^
ValueError: it is wrong, as
its second line says

2026-01-02 03:04:08,006 - CoreCell - ERROR - [ME=server] cannot send to 'server.1'
2026-01-02 03:04:09,006 - D - WARNING - an Error is near
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "error_log.txt"
    path.write_text(LOG)
    return path


class TestErrors:
    def test_an_error_is_its_line_and_of_a_traceback_the_exception(self, log):
        assert [error.text for error in flare_log.errors(log)] == [
            "2026-01-02 03:04:06,006 - B - ERROR - [identity=a] - first",
            "2026-01-02 03:04:07,006 - C - ERROR -\nValueError: it is wrong, as\n"
            "its second line says",
        ]

    def test_they_are_in_the_order_of_their_times(self, log):
        assert [error.time[-3:] for error in flare_log.errors(log)] == ["006", "006"]
        times = [error.time for error in flare_log.errors(log)]
        assert times == sorted(times)

    def test_a_log_that_is_not_there_has_none(self, tmp_path):
        assert flare_log.errors(tmp_path / "no.txt") == []


class TestLastErrors:
    def test_the_last_ones_come_last(self, log):
        assert flare_log.last_errors(log, 1).endswith("its second line says")
        assert "first" in flare_log.last_errors(log)

    def test_what_was_raised_outside_of_any_line_is_one(self, log):
        log.write_text("some words\nModuleNotFoundError: no x\nmore words\n")
        assert flare_log.last_errors(log) == "ModuleNotFoundError: no x"

    def test_without_errors_they_are_the_last_lines(self, log):
        log.write_text("1\n2\n3\n")
        assert flare_log.last_errors(log, 2) == "2\n3"


def test_errors_of_several_files_are_one_after_the_other_as_they_happened(log, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("2026-01-02 03:04:06,500 - site - ERROR - train failed: no image\n")
    texts = [error.text for error in flare_log.errors(log, notes, tmp_path / "no.txt")]
    assert len(texts) == 3 and texts[1].endswith("train failed: no image")


def test_a_sites_notes_lie_in_its_workspace(tmp_path):
    assert flare_log.site_notes(tmp_path, "7") == tmp_path / "local_notes/7.txt"


def test_why_a_site_cannot_take_part_may_have_lines(log):
    assert flare_log.site_reason(log) is None
    with log.open("a") as file:
        file.write(f"2026-01-02 03:04:09,006 - E - ERROR - {CANNOT_TAKE_PART}no file\nnor folder\n")
        file.write("2026-01-02 03:04:10,006 - E - ERROR - train refused\n")
    assert flare_log.site_reason(log) == "no file\nnor folder"
