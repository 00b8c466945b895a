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


def test_an_error_is_its_line_and_of_a_traceback_the_exception_in_order_of_time(log, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("2026-01-02 03:04:06,500 - site - ERROR - train failed: no image\n")
    found = flare_log.errors(log, notes, tmp_path / "no.txt")
    assert [error.text for error in found] == [
        "2026-01-02 03:04:06,006 - B - ERROR - [identity=a] - first",
        "2026-01-02 03:04:06,500 - site - ERROR - train failed: no image",
        "2026-01-02 03:04:07,006 - C - ERROR -\nValueError: it is wrong, as\nits second line says",
    ]
    assert found[2].time == "2026-01-02 03:04:07,006"


class TestLastException:
    def test_it_is_that_of_the_last_traceback(self, log, tmp_path):
        found = "ValueError: it is wrong, as\nits second line says"
        assert flare_log.last_exception(log) == (found, log)
        log.write_text(LOG + RAISED.format("a.b.SiteError: no model"))
        assert flare_log.last_exception(log) == ("SiteError: no model", log)
        log.write_text(LOG.splitlines()[1] + "\n")
        assert flare_log.last_exception(log, tmp_path / "no.txt") is None

    def test_one_that_flare_makes_of_another_is_not_it(self, log):
        wrapped = RAISED.format("nvflare.fuel.common.excepts.ConfigError: Error processing x")
        log.write_text(RAISED.format("TypeError: no class") + wrapped)
        assert flare_log.last_exception(log) == ("TypeError: no class", log)
        log.write_text(wrapped)
        assert flare_log.last_exception(log) == ("ConfigError: Error processing x", log)

    def test_an_error_in_a_sites_notes_is_one(self, log, tmp_path):
        notes = tmp_path / "notes.txt"
        notes.write_text(
            "2026-01-02 03:04:08,007 - surgical_aggregation - INFO - nothing is withheld\n"
            "2026-01-02 03:04:08,006 - surgical_aggregation - ERROR - train failed: no a.png\n"
        )
        assert flare_log.last_exception(log, notes) == ("train failed: no a.png", notes)
        log.write_text(RAISED.format("KeyError: 1"))  # later
        assert flare_log.last_exception(log, notes) == ("KeyError: 1", log)


def test_last_errors_are_of_any_program_and_else_the_last_lines(log):
    assert flare_log.last_errors(log, 1).endswith("its second line says")
    assert "first" in flare_log.last_errors(log)
    log.write_text("some words\nModuleNotFoundError: no x\nmore words\n")
    assert flare_log.last_errors(log) == "ModuleNotFoundError: no x"
    log.write_text("1\n2\n3\n")
    assert flare_log.last_errors(log, 2) == "2\n3"


def test_why_a_site_cannot_take_part_may_have_lines(log, tmp_path):
    assert flare_log.site_notes(tmp_path, "7") == tmp_path / "local_notes/7.txt"
    assert flare_log.site_reason(log) is None
    with log.open("a") as file:
        file.write(f"2026-01-02 03:04:09,006 - E - ERROR - {CANNOT_TAKE_PART}no file\nnor folder\n")
        file.write("2026-01-02 03:04:10,006 - E - ERROR - train refused\n")
    assert flare_log.site_reason(log) == "no file\nnor folder"
