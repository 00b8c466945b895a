import json

import pytest

from flare import Engine, context
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.local_notes import note, note_error, notes_file


@pytest.fixture
def engine(tmp_path):
    return Engine(tmp_path)


def lines(engine):
    text = (engine.folder / "server" / notes_file("job")).read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_notes_and_errors_are_lines_of_json_with_their_dates(engine):
    assert note(context(engine=engine), "first") == notes_file("job") == "local_notes/job.txt"
    text = note_error(context(engine=engine), "train failed", SiteError("no csv,\nnor \udcff"))
    assert text == "train failed; see local_notes/job.txt"
    first, second = lines(engine)
    assert first.pop("date")[:2] == second.pop("date")[:2] == "20"
    assert first == {"note": "first"}
    assert second == {"what": "train failed", "kind": "SiteError", "reason": "no csv,\nnor \udcff"}


@pytest.mark.parametrize(("error", "kind", "reason", "trace"), [
    (SiteError("why"), "SiteError", "why", False), (OSError("why"), "OSError", "why", False),
    (OSError(28, "full"), "ENOSPC", "[Errno 28] full", False),
    (MemoryError(), "MemoryError", "MemoryError", False),
    (KeyError("Edema"), "KeyError", "'Edema'", True),
])  # fmt: skip
def test_of_an_unforeseen_error_there_is_a_trace(engine, error, kind, reason, trace):
    try:
        raise error
    except Exception as raised:
        note_error(context(engine=engine), "x", raised)
    (line,) = lines(engine)
    assert (line["kind"], line["reason"]) == (kind, reason)
    assert ("Traceback" in engine.notes() and "raise error" in engine.notes()) == trace


def test_only_the_sites_account_can_read_them(engine, tmp_path):
    note(context(engine=engine), "3 positives of Edema")
    file = tmp_path / "server" / notes_file("job")
    assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]


def test_a_disk_that_takes_none_keeps_nothing_from_going_on(engine, tmp_path, capsys):
    (tmp_path / "server").mkdir()
    (tmp_path / "server/local_notes").write_text("no folder")
    text = note(context(engine=engine), "Edema stays")
    assert text == "local_notes/job.txt (which cannot be written: File exists)"
    assert "Edema stays" in capsys.readouterr().err
