import json

import pytest

from cxr_study.runs import run_failure
from cxr_study.runs.run_failure import Party, explain, lost_processes
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.site.local_notes import CANNOT_PARTICIPATE

START = {"event": "started"}
DECLARED = [{"event": "declared", "site": site} for site in ("a", "b")]
BEGUN = [START, *DECLARED]
ROUND = {"event": "round", "round": 0}
OWN = "the task failed there; see its own log"
NEWER = {"event": "of a newer version", "facts": [1]}
FULL = {"what": "train failed", "kind": "ENOSPC", "reason": "[Errno 28] No space left on device"}
NO_CSV = {"what": CANNOT_PARTICIPATE, "kind": "SiteError", "reason": "no\ncsv"}
TRACE = "Traceback\n  1\nTypeError: no module x\n"
UNKNOWN = "and no file on this machine gives a reason. Was it killed, or could it not load the job?"


def before(who):
    return run_failure._NOT_STARTED.format(who)


def refused(reason, site="a", round_=1, task="train", event="refused"):
    return {"event": event, "site": site, "task": task, "round": round_, "reason": reason}


def failed(reason, kind=None, **facts):
    return {"event": "failed", "reason": reason, "kind": kind, **facts}


TO_DO = "No space left on device. Make room on that disk, and resume the run."
NO_DISK = [f"a: train failed: [Errno 28] {TO_DO}", "The log of a is a.txt"]
ENDED = "The server ended the run: "
TAIL = [
    "The log of {0} is {0}.log, and ends with", "Traceback", "  1", "TypeError: no module x",
]  # fmt: skip
SERVERS, AS = ([line.format(who) for line in TAIL] for who in ("server", "a"))
WHY = {
    "a site's own words, and what the server did then": (
        [*BEGUN, refused(OWN), failed(f"a: {OWN}")], {"a": FULL}, {}, [],
        [*NO_DISK, f"{ENDED}a: {OWN}"]),
    "why a site cannot participate": (
        [START, failed("too few")], {"b": NO_CSV}, {"b": TRACE}, [],
        ["b: no", "csv", "The log of b is b.txt", f"{ENDED}too few"]),
    "a refusal of another": (
        [*BEGUN, refused("NaN", "b"), refused(OWN), failed(OWN)], {"a": FULL}, {}, [],
        [*NO_DISK, "b, round 1: NaN", ENDED + OWN]),
    "the record where no site is on this machine": (
        [*BEGUN, refused("no answer", event="silent"), refused("odd", "b", None, "test"), NEWER,
         failed("too few"), failed("so what")], {}, {}, [],
        ["a, round 1: no answer", "b, test: odd", f"{ENDED}too few"]),
    "the server's own error": (
        [*BEGUN, failed("x failed: no memory", "MemoryError")], {}, {"server": TRACE}, [],
        ["x failed: no memory. Lower batch_size, or give that process more memory.",
         "The log of server is server.log"]),
    "not what the run went on after": (
        [*BEGUN, refused(OWN, round_=0), ROUND, refused("NaN", "b"), failed("NaN")],
        {"a": FULL}, {}, [], ["b, round 1: NaN", f"{ENDED}NaN"]),
    "a process that was killed": (
        [*BEGUN, ROUND], {}, {"a": "x"}, ["b"], [f"a process at b ended, {UNKNOWN}"]),
    "one of two": ([*BEGUN], {}, {}, ["a", "b"], [f"a process at a or b ended, {UNKNOWN}"]),
    "the server's": (
        BEGUN, {"a": FULL}, {"server": TRACE}, ["server"],
        ["a process at the server ended.", *SERVERS]),
    "who was lost, and others that the record speaks of": (
        [*BEGUN, refused("NaN", "b")], {"a": FULL, "b": NO_CSV}, {"a": TRACE}, ["a"],
        ["a process at a ended.", *NO_DISK, "b, round 1: NaN"]),
    "none that is lost where the server ended the run": (
        [*BEGUN, failed("no body")], {}, {}, ["a"], ["no body"]),
    "FLARE's log before anything begins": (
        [], {}, {"server": TRACE}, [], [before("server"), *SERVERS]),
    "a site's before it does": (
        [START, DECLARED[1]], {}, {"a": TRACE, "b": TRACE}, [], [before("a"), *AS]),
    "nothing that anybody says": ([*BEGUN, NEWER], {}, {"a": TRACE, "server": TRACE}, [], []),
    "no file on this machine": (None, {}, {}, [], []),
}  # fmt: skip
"""What is reported -> record, errors in sites' notes, FLARE's logs, who is lost, and the lines."""


def record(folder, *events):
    """The server's folder, with the record of a run."""
    (folder / RECORD_FILE).write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


@pytest.mark.parametrize(("events", "notes", "logs", "lost", "lines"), WHY.values(), ids=WHY)
def test_the_reason_is_in_notes_record_or_flares_log(tmp_path, events, notes, logs, lost, lines):
    for site, error in notes.items():
        written = json.dumps({"note": "x"}), json.dumps(error), "  trace of it\n1\n{torn"
        (tmp_path / f"{site}.txt").write_text("\n".join(written))
    for party, text in logs.items():
        (tmp_path / f"{party}.log").write_text(f"{text}\n")
    known = {w: Party(tmp_path / f"{w}.log", tmp_path / f"{w}.txt") for w in {*notes, *logs}}
    found = explain(None if events is None else record(tmp_path, *events), known, lost)
    assert found.reason.replace(f"{tmp_path}/", "").splitlines() == lines
    assert found.final == (lines[:1] in ([before("a")], [before("server")]))


CHECKED = refused("no", "b", None, "check")


@pytest.mark.parametrize(("events", "final"), [
    ([failed("x", began=False)], True), ([failed("x", began=True)], False),
    ([failed("x")], False),  # of an older version
    ([refused("gone"), failed("x", began=False)], False),
    ([CHECKED, failed("x", began=False)], True),
    ([{**CHECKED, "event": "silent"}, failed("x", began=False)], False),
])  # fmt: skip
def test_what_ended_before_any_round_and_for_no_failure_of_a_site_is_final(tmp_path, events, final):
    assert explain(record(tmp_path, START, *events), {}).final == final


@pytest.mark.parametrize(("events", "service", "lost"), [
    ([START], "Failing job 1 due to reported failure from a: exception", ["server"]),
    ([START, {"event": "ended", "owing": {"a": "train", "b": "train"}}],
     "Failing job 1 due to reported failure from b: exception", ["b"]),
    ([], "Failing job 1: terminal outcome unavailable from b: client dead", ["b"]),
    ([START, {"event": "ended", "owing": {"b": "train", "a": "start"}}],
     "Failing job 2 due to reported failure from b: exception", ["a", "b"]),
    ([START, {"event": "ended"}], "", []),  # of an older version
    ([], "", []),
])  # fmt: skip
def test_whose_process_ended_is_in_the_record_or_flares_log(tmp_path, events, service, lost):
    (tmp_path / "log.txt").write_text(f"2026 - INFO - {service}\n")
    server = record(tmp_path, *events)
    assert lost_processes("1", server, tmp_path) == lost
    if "Failing job 1" not in service:
        assert lost_processes("1", server, None) == lost
    assert lost_processes("1", None, None) == []


def test_a_log_ends_with_its_last_lines_and_of_a_long_one_both_ends_are_shown(tmp_path):
    log = tmp_path / "log.txt"
    assert run_failure.tail(log) == ""
    log.write_text(f"1\n\n2\nbegin{'x' * 5000}end\n\n")
    second, long = run_failure.tail(log, 2).splitlines()
    assert second == "2" and len(long) < 1000
    assert long.startswith("begin") and long.endswith("end")
