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


def test_lines_are_in_the_form_of_flares_log_one_after_the_other(fl_ctx, notes):
    assert note(fl_ctx, "first") == notes_file("job") == "local_notes/job.txt"
    note_error(fl_ctx, "train failed: ", SiteError("no csv"))
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
    assert re.fullmatch(
        rf"{time} - \w+ - INFO - first\n{time} - \w+ - ERROR - train failed: no csv\n", notes()
    )


@pytest.mark.parametrize(
    ("error", "text", "trace"),
    [
        (SiteError("why"), "why", False),
        (OSError("why"), "why", False),
        (MemoryError(), "MemoryError", False),
        (KeyError("Edema"), "'Edema'", True),
    ],
)
def test_of_an_unforeseen_error_there_is_a_trace(fl_ctx, notes, error, text, trace):
    note_error(fl_ctx, "x: ", raised(error))
    assert f"x: {text}\n" in notes()
    assert ("Traceback" in notes() and "in raised" in notes()) == trace


def test_a_disk_that_takes_none_keeps_nothing_from_going_on(fl_ctx, tmp_path, capsys):
    (tmp_path / "server").mkdir()
    (tmp_path / "server/local_notes").write_text("no folder")
    told = note(fl_ctx, "Edema stays")
    assert told == "local_notes/job.txt (which cannot be written: File exists)"
    assert "Edema stays" in capsys.readouterr().err
