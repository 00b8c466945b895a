"""Logs here are of the form of FLARE 2.9's own."""

import json

import numpy as np
import pytest

from cxr_study.runs import run_failure
from flare import Engine, context, result
from surgical_aggregation.server.access.class_filters import CheckResult
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.site.executor import CANNOT_TAKE_PART
from surgical_aggregation.wire.headers import REFUSAL

RAISED = """2026-01-02 03:04:10,006 - F - ERROR - Traceback (most recent call last):
  File "x.py", line 1, in f
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "x.py", line 2, in f
{}

"""
CONFIG = "nvflare.fuel.common.excepts.ConfigError: Error processing x"
WRAPPED = RAISED.format(CONFIG).replace(":10,", ":11,")  # logged later
FULL = RAISED.format("OSError: [Errno 28] No space left on device")
NO_CLASS = "TypeError: Can't load class my_hospital.MySite: No module named 'my_hospital'"
UNKNOWN = RAISED.format(NO_CLASS) + WRAPPED
BODY = RAISED.format(
    "surgical_aggregation.site.contract.site.SiteError: bodies differ. Start anew."
)
UNSENT = "2026-01-02 03:04:05,007 - ClientRunner - ERROR - failed to send task result: timeout\n"

OF_FLARE = "Result from nih is bad, error code: EXECUTION_EXCEPTION. Cannot reach min_responses."
ITS_OWN_LOG = "the site could not carry out the task (EXECUTION_EXCEPTION); its own log says why"
NAN = "round 1 needs accepted results of 2 sites; got 1 (refused: nih: NaN). Mend the sites."
ROUND = {"event": "round", "round": 0, "seconds": 1.0, "column_similarity": {}}
NEWER = {"event": "of a newer version", "facts": [1]}


def refused(reason, site="nih", round_=1, **facts):
    return {"event": "refused", "site": site, "round": round_, "reason": reason, **facts}


def failed(reason):
    return {"event": "failed", "reason": reason}


def not_permitted():
    """What the server says of a result with a class that its site may not train."""
    fl_ctx = context("nih", classes=["Edema"], engine=Engine())
    column = (np.zeros(2, np.float32), np.zeros(1, np.float32))
    CheckResult({"nih": ["Mass"]}).process(result({}, {"Edema": column}), fl_ctx)
    return fl_ctx.get_prop(REFUSAL)["reason"]


@pytest.fixture
def why(tmp_path):
    """Why a run failed, by its record and its parties' logs; a log's file is its party's name."""

    def why(events, texts, but=()):
        for party, text in texts.items():
            (tmp_path / f"{party}.txt").write_text(text)
        logs = {party: (tmp_path / f"{party}.txt",) for party in texts}
        said = run_failure.why(events and record(tmp_path, *events), logs, but)
        return said and said.replace(f"{tmp_path}/", "").splitlines()

    return why


def record(server, *events):
    """Write the record of a run; the server's folder."""
    lines = [json.dumps(event) + "\n" for event in ({"event": "started"}, *events)]
    (server / RECORD_FILE).write_text("".join(lines))
    return server


NO_DISK = [
    "nih: OSError: [Errno 28] No space left on device. Make room on that disk, and go on with the "
    "run.",
    "The log of nih is nih.txt",
]
INSTALL = f"{NO_CLASS}. Install it there, or correct its name in the job."
PERMIT = "Permit it in the server's table, or take it out of the site's classes."
ENDED = "The server ended the run: "
SILENT = {**refused("no answer", "a", 3), "event": "silent"}
BOTH = {"nih": FULL, "chexpert": UNSENT}

WHY = {
    "a site's own exception": ([failed(OF_FLARE)], BOTH, [*NO_DISK, ENDED + OF_FLARE]),
    "it and not again the refusal": (
        [ROUND, refused(ITS_OWN_LOG), failed(ITS_OWN_LOG)], BOTH, [*NO_DISK, ENDED + ITS_OWN_LOG],
    ),
    "a refusal and what to do": (
        [ROUND, refused(not_permitted()), failed(OF_FLARE)], {"nih": "", "chexpert": UNSENT},
        [f"nih, round 1: {not_permitted()}. {PERMIT}", ENDED + OF_FLARE],
    ),
    "the record where no log is at hand": (
        [SILENT, refused("no metrics", "b", None, task="validate"), NEWER, failed(NAN)], {},
        ["a, round 3: no answer", "b, validate: no metrics", ENDED + NAN],
    ),
    "one reason of two sites": (
        None, {"nih": UNKNOWN, "chexpert": UNKNOWN},
        [f"chexpert, nih: {INSTALL}", "The log of chexpert is chexpert.txt", NO_DISK[1]],
    ),
    "the server's": (
        None, {"server": UNKNOWN}, [f"server: {INSTALL}", "The log of server is server.txt"],
    ),
    "not the server's where it ended the run": ([failed("no body")], {"server": UNKNOWN}, None),
    "what a site says to do": (
        None, {"nih": BODY}, ["nih: SiteError: bodies differ. Start anew.", NO_DISK[1]],
    ),
    "what the reason says to do": (
        None, {"nih": FULL.replace("OSError: [Errno 28]", "CheckpointError: make room:")},
        ["nih: CheckpointError: make room: No space left on device", NO_DISK[1]],
    ),
    "a site's own words": (
        None, {"nih": f"2026-01-02 03:04:05,006 - K - ERROR - {CANNOT_TAKE_PART}no\ncsv\n{FULL}"},
        ["nih: no", "csv", NO_DISK[1]],
    ),
    "not what the run went on after": (
        [refused(ITS_OWN_LOG, round_=0), ROUND, refused("NaN", "chexpert"), failed(NAN)],
        {"nih": FULL}, ["chexpert, round 1: NaN", ENDED + NAN],
    ),
    "nothing that anybody says": ([failed("no body"), NEWER], {"nih": UNSENT}, None),
    "nothing at hand": (None, {}, None),
}  # fmt: skip
"""What is told -> the record, the parties' error logs, and the lines."""


@pytest.mark.parametrize(("events", "texts", "said"), WHY.values(), ids=WHY)
def test_why_is_told_by_each_partys_own_words_and_else_by_the_record(why, events, texts, said):
    assert why(events, texts) == said


def test_of_some_sites_nothing_is_said_and_of_a_long_error_both_ends(why):
    events = [refused("NaN"), refused("late", "chexpert")]
    assert why(events, {"nih": FULL}, ["nih"]) == ["chexpert, round 1: late"]
    long = FULL.replace("OSError: [Errno 28]", f"Error: begin{'x' * 5000} ")
    first = why(None, {"nih": long})[0]
    assert "Error: begin" in first and "left on device" in first and len(first) < 1000


def test_the_record_says_why_the_server_ended_the_run_and_whom_it_refused_last(tmp_path):
    events = (refused("NaN", "a", 0), ROUND, refused("NaN", "c"), refused("late", "b"))
    server = record(tmp_path, *events, NEWER, failed("no body"), failed("so what"))
    assert run_failure.ended(server) == "no body" and run_failure.ended(None) is None
    assert run_failure.refused(server) == ["b", "c"] and run_failure.refused(None) == []


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


def test_an_error_is_its_line_and_of_a_traceback_the_exception_in_order_of_time(log, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("2026-01-02 03:04:06,500 - site - ERROR - train failed: no image\n")
    found = run_failure.logged_errors(log, notes, tmp_path / "no.txt")
    assert [error.text for error in found] == [
        "2026-01-02 03:04:06,006 - B - ERROR - [identity=a] - first",
        "2026-01-02 03:04:06,500 - site - ERROR - train failed: no image",
        "2026-01-02 03:04:07,006 - C - ERROR -\nValueError: it is wrong, as\nits second line says",
    ]
    assert found[2].time == "2026-01-02 03:04:07,006"


NOTES = (
    "2026-01-02 03:04:08,007 - surgical_aggregation - INFO - nothing is withheld\n"
    "2026-01-02 03:04:08,006 - surgical_aggregation - ERROR - train failed: no a.png\n"
)


@pytest.mark.parametrize(("text", "noted", "reason", "file"), [
    (LOG, "", "ValueError: it is wrong, as\nits second line says", "log"),
    (LOG + RAISED.format("a.b.SiteError: no model"), "", "SiteError: no model", "log"),
    (RAISED.format("TypeError: no class") + WRAPPED, "", "TypeError: no class", "log"),
    (WRAPPED, "", "ConfigError: Error processing x", "log"),
    (LOG, NOTES, "train failed: no a.png", "notes"),
    (RAISED.format("KeyError: 1"), NOTES, "KeyError: 1", "log"),  # later
])  # fmt: skip
def test_the_last_exception_is_that_of_the_last_traceback_or_error_in_notes(
    tmp_path, text, noted, reason, file
):
    files = tmp_path / "log", tmp_path / "notes"
    for path, content in zip(files, (text, noted), strict=True):
        path.write_text(content)
    assert run_failure.last_exception(*files) == (reason, tmp_path / file)
    files[0].write_text(LOG.splitlines()[1] + "\n")
    assert run_failure.last_exception(files[0], tmp_path / "no.txt") is None


def test_last_errors_are_of_any_program_and_else_the_last_lines(log):
    assert run_failure.last_errors(log, 1).endswith("its second line says")
    assert "first" in run_failure.last_errors(log)
    log.write_text("some words\nModuleNotFoundError: no x\nmore words\n")
    assert run_failure.last_errors(log) == "ModuleNotFoundError: no x"
    log.write_text("1\n2\n3\n")
    assert run_failure.last_errors(log, 2) == "2\n3"
