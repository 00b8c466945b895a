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
    def test_a_sites_own_exception_comes_first_with_what_to_do(self, server, logs):
        at_hand = logs(nih=FULL, chexpert=UNSENT)
        assert run_failure.why(server(failed(OF_FLARE)), at_hand).splitlines() == [
            "nih: OSError: [Errno 28] No space left on device. Make room on that disk, and go on "
            "with the run.",
            f"The log of nih is {at_hand['nih'][0]}",
            f"The server ended the run: {OF_FLARE}",
        ]

    def test_it_is_told_once_where_the_record_has_the_error_code_alone(self, server, logs):
        record = server(
            ROUND, refused(ITS_OWN_LOG, task="train"), failed(TOO_FEW.format(ITS_OWN_LOG))
        )
        first, _, last = run_failure.why(record, logs(nih=FULL)).splitlines()
        assert first.startswith("nih: OSError: ")
        assert last == f"The server ended the run: {TOO_FEW.format(ITS_OWN_LOG)}"

    def test_a_refusal_on_record_is_told_with_its_round_and_what_to_do(self, server, logs):
        reason = not_permitted()
        record = server(ROUND, refused(reason), failed(OF_FLARE))
        first, _ = run_failure.why(record, logs(nih="", chexpert=UNSENT)).splitlines()
        assert first == (
            f"nih, round 1: {reason}. Permit it in the server's table, or take it out of the "
            "site's classes."
        )

    def test_without_the_sites_logs_it_is_what_the_record_says(self, server):
        record = server(refused(ITS_OWN_LOG, round_=0), failed(TOO_FEW.format(ITS_OWN_LOG)))
        assert run_failure.why(record, {}).startswith(f"nih, round 0: {ITS_OWN_LOG}\nThe server")

    def test_a_site_without_an_answer_and_an_evaluation_are_told(self, server):
        silent = {
            "event": "silent",
            "site": "a",
            "round": 3,
            "task": "train",
            "reason": "no answer",
        }
        measured = refused("no metrics", "b", None, task="validate")
        lines = run_failure.why(server(silent, measured, NEWER), {}).splitlines()
        assert lines == ["a, round 3: no answer", "b, validate: no metrics"]

    def test_sites_with_the_same_reason_share_a_line(self, server, logs):
        at_hand = logs(nih=UNKNOWN, chexpert=UNKNOWN)
        assert run_failure.why(server(), at_hand).splitlines() == [
            f"chexpert, nih: {NO_CLASS}. Install it there, or correct its name in the job.",
            f"The log of chexpert is {at_hand['chexpert'][0]}",
            f"The log of nih is {at_hand['nih'][0]}",
        ]

    def test_the_server_that_could_not_start_is_a_party(self, logs):
        assert run_failure.why(None, logs(server=UNKNOWN)).startswith(
            f"server: {NO_CLASS}. Install"
        )

    def test_the_server_that_ended_the_run_has_said_why_on_record(self, server, logs):
        assert run_failure.why(server(failed("no body")), logs(server=UNKNOWN)) is None

    def test_an_error_that_says_what_to_do_stands_alone(self, logs):
        first = run_failure.why(None, logs(nih=BODY)).splitlines()[0]
        assert first == (
            "nih: SiteError: the server's body and this site's differ. Start the run from another."
        )
        told = FULL.replace("OSError: [Errno 28]", "CheckpointError: make room:")
        last = run_failure.why(None, logs(nih=told)).splitlines()[0]
        assert last == "nih: CheckpointError: make room: No space left on device"

    def test_what_a_site_says_of_itself_goes_before_its_exceptions(self, logs):
        said = f"2026-01-02 03:04:05,006 - KerasExecutor - ERROR - {CANNOT_TAKE_PART}no csv\n"
        assert run_failure.why(None, logs(nih=said + FULL)).startswith("nih: no csv\nThe log")

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

    def test_a_long_exception_keeps_both_its_ends(self, logs):
        long = FULL.replace("OSError: [Errno 28]", f"InternalError: begin{'x' * 5000} ")
        why = run_failure.why(None, logs(nih=long))
        assert "InternalError: begin" in why and "left on device" in why and len(why) < 1000


def test_the_reason_that_the_server_ended_the_run_for_is_on_record(server):
    assert run_failure.ended(server(NEWER, failed("no body"), failed("so what"))) == "no body"
    assert run_failure.ended(None) is None


def test_sites_that_were_refused_after_the_last_whole_round(server):
    events = (refused("NaN", "a", 0), ROUND, refused("NaN", "c"), refused("late", "b"))
    assert run_failure.refused(server(*events)) == ["b", "c"]
    assert run_failure.refused(None) == []
