import re

import pytest

from flare import Engine, context
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.local_notes import note, note_error, notes_file


@pytest.fixture
def fl_ctx(tmp_path):
    return context(engine=Engine(tmp_path))


@pytest.fixture
def notes(tmp_path):
    return lambda: (tmp_path / "server" / notes_file("job")).read_text()


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_the_file_is_named_by_its_place_in_the_workspace(fl_ctx, notes):
    assert note(fl_ctx, "Edema stays") == notes_file("job") == "local_notes/job.txt"
    assert "Edema stays" in notes()


def test_lines_are_in_the_form_of_flares_log_one_after_the_other(fl_ctx, notes):
    note(fl_ctx, "first")
    note_error(fl_ctx, "train failed: ", SiteError("no csv"))
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
    assert re.fullmatch(
        rf"{time} - \w+ - INFO - first\n{time} - \w+ - ERROR - train failed: no csv\n", notes()
    )


@pytest.mark.parametrize("error", [SiteError("why"), OSError("why"), MemoryError()])
def test_of_a_foreseen_error_there_is_no_trace(fl_ctx, notes, error):
    note_error(fl_ctx, "x: ", raised(error))
    assert f"x: {str(error) or 'MemoryError'}\n" in notes()
    assert "Traceback" not in notes()


def test_of_another_there_is(fl_ctx, notes):
    note_error(fl_ctx, "x: ", raised(KeyError("Edema")))
    assert "x: 'Edema'\nTraceback" in notes() and "in raised" in notes()


def test_a_disk_that_takes_none_keeps_nothing_from_going_on(fl_ctx, tmp_path, capsys):
    (tmp_path / "server").mkdir()
    (tmp_path / "server/local_notes").write_text("no folder")
    told = note(fl_ctx, "Edema stays")
    assert told == "local_notes/job.txt (which cannot be written: File exists)"
    assert "Edema stays" in capsys.readouterr().err
