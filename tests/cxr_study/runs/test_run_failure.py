"""Logs here are FLARE 2.9's own, of runs that failed, with most frames left out."""

import json

import numpy as np
import pytest

from cxr_study.runs import run_failure
from flare import Engine, context, result
from surgical_aggregation.server.access.class_filters import CheckResult
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.site.executor import CANNOT_TAKE_PART
from surgical_aggregation.wire.headers import REFUSAL

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    work()\n'
FULL = (
    "2026-01-02 03:04:05,006 - ClientRunner - ERROR - [identity=nih] - Processing error from "
    "executor KerasExecutor: OSError: [Errno 28] No space left on device\n"
    f"2026-01-02 03:04:05,007 - ClientRunner - ERROR - {TRACEBACK}"
    "OSError: [Errno 28] No space left on device\n\n"
    "During handling of the above exception, another exception occurred:\n\n"
    f"{TRACEBACK}OSError: [Errno 28] No space left on device\n\n"
)
NO_CLASS = "TypeError: Can't load class my_hospital.MySite: No module named 'my_hospital'"
CONFIG = (
    "Error processing 'config_fed_client.conf' in element 'id = \"site\"\n"
    'path = "my_hospital.MySite"\nargs {\n  site = "nih"\n}\': path: \'components.#1\', '
    f"exception: '{NO_CLASS}'"
)
UNKNOWN = (
    f"2026-01-02 03:04:05,006 - JsonScanner - ERROR - {TRACEBACK}"
    "ModuleNotFoundError: No module named 'my_hospital'\n\n"
    f"During handling of the above exception, another exception occurred:\n\n{TRACEBACK}"
    f"{NO_CLASS}\n\n"
    "2026-01-02 03:04:05,007 - ClientTaskWorker - ERROR - do_one_task execute exception: "
    f"ConfigError: {CONFIG}\n"
    f"2026-01-02 03:04:05,008 - root - ERROR - {TRACEBACK}"
    f"nvflare.fuel.common.excepts.ConfigError: {CONFIG}\n\n"
)
BODY = (
    f"2026-01-02 03:04:05,007 - ClientRunner - ERROR - {TRACEBACK}"
    "surgical_aggregation.site.contract.site.SiteError: the server's body and this site's differ. "
    "Start the run from another.\n\n"
)
UNSENT = "2026-01-02 03:04:05,007 - ClientRunner - ERROR - failed to send task result: timeout\n"

OF_FLARE = "Result from nih is bad, error code: EXECUTION_EXCEPTION. Cannot reach min_responses."
ITS_OWN_LOG = "the site could not carry out the task (EXECUTION_EXCEPTION); its own log says why"
TOO_FEW = (
    "round 1 needs accepted results of 2 sites; got 1 (accepted: chexpert; refused: nih: {}). Mend "
    "the sites, or lower min_clients."
)
ROUND = {"event": "round", "round": 0, "seconds": 1.0, "column_similarity": {}}
NEWER = {"event": "of a newer version", "facts": [1]}


def refused(reason, site="nih", round_=1, **facts):
    return {"event": "refused", "site": site, "round": round_, "reason": reason, **facts}


def failed(reason):
    return {"event": "failed", "reason": reason}


def not_permitted():
    """What the server says of a result with a class that its site may not teach."""
    fl_ctx = context("nih", classes=["Edema"], engine=Engine())
    column = (np.zeros(2, np.float32), np.zeros(1, np.float32))
    CheckResult({"nih": ["Mass"]}).process(result({}, {"Edema": column}), fl_ctx)
    return fl_ctx.get_prop(REFUSAL)["reason"]


@pytest.fixture
def server(tmp_path):
    """Writes the run's record; the server's folder."""

    def server(*events):
        folder = tmp_path / "server"
        folder.mkdir()
        lines = [json.dumps(event) + "\n" for event in ({"event": "started"}, *events)]
        (folder / RECORD_FILE).write_text("".join(lines))
        return folder

    return server


@pytest.fixture
def logs(tmp_path):
    """Writes the error logs of parties; where they are."""

    def logs(**texts):
        for party, text in texts.items():
            (tmp_path / f"{party}.txt").write_text(text)
        return {party: (tmp_path / f"{party}.txt",) for party in texts}

    return logs


class TestWhy:
    @pytest.mark.parametrize(
        "events", [[failed(OF_FLARE)], [ROUND, refused(ITS_OWN_LOG), failed(ITS_OWN_LOG)]]
    )
    def test_a_sites_own_exception_comes_first_and_once_with_what_to_do(self, server, logs, events):
        at_hand = logs(nih=FULL, chexpert=UNSENT)
        assert run_failure.why(server(*events), at_hand).splitlines() == [
            "nih: OSError: [Errno 28] No space left on device. Make room on that disk, and go on "
            "with the run.",
            f"The log of nih is {at_hand['nih'][0]}",
            f"The server ended the run: {events[-1]['reason']}",
        ]

    def test_a_refusal_on_record_is_told_with_its_round_and_what_to_do(self, server, logs):
        reason = not_permitted()
        record = server(ROUND, refused(reason), failed(OF_FLARE))
        first, _ = run_failure.why(record, logs(nih="", chexpert=UNSENT)).splitlines()
        assert first == (
            f"nih, round 1: {reason}. Permit it in the server's table, or take it out of the "
            "site's classes."
        )

    def test_without_the_sites_logs_it_is_what_the_record_says(self, server):
        silent = {**refused("no answer", "a", 3), "event": "silent"}
        measured = refused("no metrics", "b", None, task="validate")
        told = run_failure.why(server(silent, measured, NEWER, failed(TOO_FEW.format("x"))), {})
        assert told.splitlines() == [
            "a, round 3: no answer", "b, validate: no metrics",
            f"The server ended the run: {TOO_FEW.format('x')}",
        ]  # fmt: skip

    def test_sites_with_the_same_reason_share_a_line(self, server, logs):
        at_hand = logs(nih=UNKNOWN, chexpert=UNKNOWN)
        assert run_failure.why(server(), at_hand).splitlines() == [
            f"chexpert, nih: {NO_CLASS}. Install it there, or correct its name in the job.",
            f"The log of chexpert is {at_hand['chexpert'][0]}",
            f"The log of nih is {at_hand['nih'][0]}",
        ]

    def test_the_server_is_a_party_unless_it_ended_the_run_itself(self, server, logs):
        at_hand = logs(server=UNKNOWN)
        assert run_failure.why(None, at_hand).startswith(f"server: {NO_CLASS}. Install")
        assert run_failure.why(server(failed("no body")), at_hand) is None

    @pytest.mark.parametrize(
        ("log", "first"),
        [
            (BODY, "nih: SiteError: the server's body and this site's differ. Start the run from "
                   "another."),
            (FULL.replace("OSError: [Errno 28]", "CheckpointError: make room:"),
             "nih: CheckpointError: make room: No space left on device"),
            (f"2026-01-02 03:04:05,006 - KerasExecutor - ERROR - {CANNOT_TAKE_PART}no csv\n{FULL}",
             "nih: no csv"),
        ],
    )  # fmt: skip
    def test_a_sites_own_words_and_what_it_says_to_do_stand_alone(self, logs, log, first):
        assert run_failure.why(None, logs(nih=log)).splitlines()[0] == first

    def test_what_the_run_went_on_after_is_no_reason(self, server, logs):
        earlier = refused(ITS_OWN_LOG, round_=0)
        record = server(earlier, ROUND, refused("NaN", "chexpert"), failed(TOO_FEW.format("NaN")))
        assert run_failure.why(record, logs(nih=FULL)).startswith("chexpert, round 1: NaN\nThe")

    def test_of_some_sites_nothing_is_said(self, server, logs):
        record = server(refused("NaN"), refused("late", "chexpert"))
        assert run_failure.why(record, logs(nih=FULL), ["nih"]) == "chexpert, round 1: late"

    def test_where_nobody_says_anything_there_is_nothing(self, server, logs):
        assert run_failure.why(server(failed("no body"), NEWER), logs(nih=UNSENT)) is None
        assert run_failure.why(None, {}) is None
        long = logs(nih=FULL.replace("OSError: [Errno 28]", f"Error: begin{'x' * 5000} "))
        why = run_failure.why(None, long)  # both its ends are kept
        assert "Error: begin" in why and "left on device" in why and len(why) < 1000


def test_the_record_says_why_the_server_ended_the_run_and_whom_it_refused_last(server):
    events = (refused("NaN", "a", 0), ROUND, refused("NaN", "c"), refused("late", "b"))
    record = server(*events, NEWER, failed("no body"), failed("so what"))
    assert run_failure.ended(record) == "no body" and run_failure.ended(None) is None
    assert run_failure.refused(record) == ["b", "c"] and run_failure.refused(None) == []


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


ONE_RAISED = """2026-01-02 03:04:10,006 - F - ERROR - Traceback (most recent call last):
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
    found = run_failure.logged_errors(log, notes, tmp_path / "no.txt")
    assert [error.text for error in found] == [
        "2026-01-02 03:04:06,006 - B - ERROR - [identity=a] - first",
        "2026-01-02 03:04:06,500 - site - ERROR - train failed: no image",
        "2026-01-02 03:04:07,006 - C - ERROR -\nValueError: it is wrong, as\nits second line says",
    ]
    assert found[2].time == "2026-01-02 03:04:07,006"


class TestLastException:
    def test_it_is_that_of_the_last_traceback(self, log, tmp_path):
        found = "ValueError: it is wrong, as\nits second line says"
        assert run_failure.last_exception(log) == (found, log)
        log.write_text(LOG + ONE_RAISED.format("a.b.SiteError: no model"))
        assert run_failure.last_exception(log) == ("SiteError: no model", log)
        log.write_text(LOG.splitlines()[1] + "\n")
        assert run_failure.last_exception(log, tmp_path / "no.txt") is None

    def test_one_that_flare_makes_of_another_is_not_it(self, log):
        wrapped = ONE_RAISED.format("nvflare.fuel.common.excepts.ConfigError: Error processing x")
        log.write_text(ONE_RAISED.format("TypeError: no class") + wrapped)
        assert run_failure.last_exception(log) == ("TypeError: no class", log)
        log.write_text(wrapped)
        assert run_failure.last_exception(log) == ("ConfigError: Error processing x", log)

    def test_an_error_in_a_sites_notes_is_one(self, log, tmp_path):
        notes = tmp_path / "notes.txt"
        notes.write_text(
            "2026-01-02 03:04:08,007 - surgical_aggregation - INFO - nothing is withheld\n"
            "2026-01-02 03:04:08,006 - surgical_aggregation - ERROR - train failed: no a.png\n"
        )
        assert run_failure.last_exception(log, notes) == ("train failed: no a.png", notes)
        log.write_text(ONE_RAISED.format("KeyError: 1"))  # later
        assert run_failure.last_exception(log, notes) == ("KeyError: 1", log)


def test_last_errors_are_of_any_program_and_else_the_last_lines(log):
    assert run_failure.last_errors(log, 1).endswith("its second line says")
    assert "first" in run_failure.last_errors(log)
    log.write_text("some words\nModuleNotFoundError: no x\nmore words\n")
    assert run_failure.last_errors(log) == "ModuleNotFoundError: no x"
    log.write_text("1\n2\n3\n")
    assert run_failure.last_errors(log, 2) == "2\n3"


def test_why_a_site_cannot_take_part_may_have_lines(log, tmp_path):
    assert run_failure.site_notes(tmp_path, "7") == tmp_path / "local_notes/7.txt"
    assert run_failure.site_reason(log) is None
    with log.open("a") as file:
        file.write(f"2026-01-02 03:04:09,006 - E - ERROR - {CANNOT_TAKE_PART}no file\nnor folder\n")
        file.write("2026-01-02 03:04:10,006 - E - ERROR - train refused\n")
    assert run_failure.site_reason(log) == "no file\nnor folder"
