import pytest

from cxr_study.runs import flare_log
from surgical_aggregation.site.executor import CANNOT_TAKE_PART

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


RAISED = """2026-01-02 03:04:10,006 - F - ERROR - Traceback (most recent call last):
  File "x.py", line 1, in f
{}

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


class TestLastException:
    def test_it_is_that_of_the_last_traceback(self, log):
        assert flare_log.last_exception(log) == (
            "ValueError: it is wrong, as\nits second line says",
            log,
        )
        with log.open("a") as file:
            file.write(RAISED.format("a.b.SiteError: no model"))
        assert flare_log.last_exception(log) == ("SiteError: no model", log)

    def test_one_that_flare_makes_of_another_is_not_it(self, log):
        wrapped = "nvflare.fuel.common.excepts.ConfigError: Error processing x"
        log.write_text(RAISED.format("TypeError: no class") + RAISED.format(wrapped))
        assert flare_log.last_exception(log) == ("TypeError: no class", log)
        log.write_text(RAISED.format(wrapped))
        assert flare_log.last_exception(log) == ("ConfigError: Error processing x", log)

    def test_without_a_traceback_there_is_none(self, log, tmp_path):
        log.write_text(LOG.splitlines()[1] + "\n")
        assert flare_log.last_exception(log) is None
        assert flare_log.last_exception(tmp_path / "no.txt") is None


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


def test_an_error_in_a_sites_notes_is_what_it_raised(tmp_path):
    log, notes = tmp_path / "error_log.txt", tmp_path / "notes.txt"
    log.write_text(
        "2026-01-02 03:04:05,006 - KerasExecutor - ERROR - train failed; notes say why\n"
    )
    notes.write_text(
        "2026-01-02 03:04:05,007 - surgical_aggregation - INFO - nothing is withheld\n"
        "2026-01-02 03:04:05,006 - surgical_aggregation - ERROR - train failed: no a.png\n"
    )
    assert flare_log.last_exception(log, notes) == ("train failed: no a.png", notes)
    later = "2026-01-02 03:04:06,006 - X - ERROR - Traceback (most recent call last):\n"
    log.write_text(f'{later}  File "x.py", line 1, in f\nKeyError: 1\n')
    assert flare_log.last_exception(log, notes) == ("KeyError: 1", log)
