import re

import pytest

from flare import Engine, context
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.local_notes import note, note_error, notes_file


@pytest.fixture
def engine(tmp_path):
    return Engine(tmp_path)


def test_lines_are_in_the_form_of_flares_log_one_after_the_other(engine):
    assert note(context(engine=engine), "first") == notes_file("job") == "local_notes/job.txt"
    note_error(context(engine=engine), "train failed: ", SiteError("no csv"))
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
    lines = rf"{time} - \w+ - INFO - first\n{time} - \w+ - ERROR - train failed: no csv\n"
    assert re.fullmatch(lines, engine.notes())


@pytest.mark.parametrize(
    ("error", "text", "trace"),
    [
        (SiteError("why"), "why", False),
        (OSError("why"), "why", False),
        (MemoryError(), "MemoryError", False),
        (KeyError("Edema"), "'Edema'", True),
    ],
)
def test_of_an_unforeseen_error_there_is_a_trace(engine, error, text, trace):
    try:
        raise error
    except Exception as raised:
        note_error(context(engine=engine), "x: ", raised)
    assert f"x: {text}\n" in engine.notes()
    assert ("Traceback" in engine.notes() and "raise error" in engine.notes()) == trace


def test_only_the_sites_account_can_read_them(engine, tmp_path):
    note(context(engine=engine), "3 positives of Edema")
    file = tmp_path / "server" / notes_file("job")
    assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]


def test_a_disk_that_takes_none_keeps_nothing_from_going_on(engine, tmp_path, capsys):
    (tmp_path / "server").mkdir()
    (tmp_path / "server/local_notes").write_text("no folder")
    told = note(context(engine=engine), "Edema stays")
    assert told == "local_notes/job.txt (which cannot be written: File exists)"
    assert "Edema stays" in capsys.readouterr().err
