import json

import pytest

from cxr_study.deployment.job_failure import explain
from cxr_study.deployment.job_watch import End, Progress
from surgical_aggregation.site.executor import CANNOT_TAKE_PART

JOB = "1234"
FULL = "OSError: [Errno 28] No space left on device"
RAISED = f'Traceback (most recent call last):\n  File "x.py", line 1, in f\n{FULL}\n'
REFUSED = {"event": "refused", "site": "b", "round": 1, "task": "train"}
UNFIT = {"site": "b", "round": None, "task": "check", "reason": "no"}
FAILED = {"event": "failed", "reason": "too few sites"}
LEFT_OUT = f"{CANNOT_TAKE_PART}no file x"


def line(second, logger, text, level="ERROR"):
    return f"2026-01-02 03:04:{second:02},000 - {logger} - {level} - {text}\n"


@pytest.fixture
def job(tmp_path):
    """A job that failed, and what is at hand of it."""
    return Job(tmp_path)


class Job:
    """The server's results in `result`, and the workspaces of a server and two sites."""

    def __init__(self, home):
        self.result = home / "result"
        self.workspaces = {name: home / name for name in ("server", "a", "b")}
        for folder in (self.result, *(path / JOB for path in self.workspaces.values())):
            folder.mkdir(parents=True)

    def log(self, party, *lines):
        folder = self.result if party == "server" else self.workspaces[party] / JOB
        path = folder / "error_log.txt"
        path.write_text("".join(lines))
        return path

    def record(self, *events):
        lines = [json.dumps(event) + "\n" for event in ({"event": "started"}, *events)]
        (self.result / "run_record.jsonl").write_text("".join(lines))

    def note(self, site, text):
        path = self.workspaces[site] / f"local_notes/{JOB}.txt"
        path.parent.mkdir()
        path.write_text(line(2, "surgical_aggregation", text))

    def owe(self, *sites):
        """By the server's log of the job a and b got a task, which some have not given back."""
        lines = [
            line(
                2,
                "GetTaskCommand",
                f"return task to client.  client_name: {site}  task_name: "
                f"train   task_id: {site}1  sharable_header_task_id: {site}1",
                "INFO",
            )
            for site in "ab"
        ]
        lines += [
            line(3, "ServerRunner", f"got result from client {site} for task: name=train, "
                 f"id={site}1", "INFO")
            for site in {*"ab"} - {*sites}
        ]  # fmt: skip
        (self.result / "log.txt").write_text("".join(lines))

    def lose_b(self):
        """The server notes that the process of site b ended ill, in second 4."""
        reason = f"Failing job {JOB} due to reported failure from b: exception"
        path = self.workspaces["server"] / "log.txt"
        path.write_text(line(4, "FederatedServer", reason, "INFO"))

    def why(
        self, status="FINISHED:EXECUTION_EXCEPTION", *, lost=False, elsewhere=False, seen=0, **meta
    ):
        deployed = {"deploy_map": {"app_server": ["server"], "app_client": ["a", "b"]}}
        end = End({"status": status, "min_clients": 2, **deployed, **meta}, lost, Progress(seen))
        return explain(JOB, end, self.result, {} if elsewhere else self.workspaces)


@pytest.mark.parametrize(
    ("facts", "said", "final"),
    [
        ({"status": "FINISHED:ABORTED"}, "it was aborted by an admin.", True),
        (
            {"status": "FINISHED:FAILED_TO_RUN",
             "job_deploy_detail": ["server: OK", "a: OK", "b: BYOC not permitted", "1 < 2"]},
            "it could not be started: b: BYOC not permitted; 1 < 2",
            True,
        ),
        (
            {"status": "FINISHED:CANT_SCHEDULE",
             "schedule_history": ["2026: too few"] * 2 + ["2026: max", "2026: scheduled"]},
            "it could not be started: too few; max",
            True,
        ),
        ({"status": "FINISHED:ABNORMAL"}, "FINISHED:ABNORMAL: a process of the job ended", True),
        ({"status": "FINISHED:ABNORMAL", "seen": 1}, "FINISHED:ABNORMAL: a process", False),
        ({"status": "RUNNING", "lost": True}, "the server was restarted under it", False),
    ],
)  # fmt: skip
def test_some_reasons_stand_in_what_flare_knows(job, facts, said, final):
    failure = job.why(**facts)
    assert failure.reason.startswith(said) and failure.final == final


@pytest.mark.parametrize(
    ("needed", "begin"), [(2, "b cannot take part: no file x\nIts notes are "), (1, "The log of s")]
)
def test_a_site_that_cannot_take_part_is_the_reason_where_too_few_are_left(job, needed, begin):
    job.log("server", line(3, "ServerRunner", "the disk is full"))
    job.note("b", LEFT_OUT)
    failure = job.why(min_clients=needed)
    assert failure.reason.startswith(begin) and failure.final == (needed == 2)
    assert "b cannot take part: no file x\nIts notes are " in failure.reason
    job.record({**REFUSED, "reason": "own log"}, {"event": "failed", "reason": "disk full"})
    assert "own log" not in job.why(min_clients=1).reason


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(("said", "events", "final"), [
    ("x", [{**FAILED, "began": False}], True),
    ("x", [{**FAILED, "began": True}], False),
    ("x", [FAILED], False),  # of an older version
    ("x", [{**REFUSED, "reason": "gone"}, {**FAILED, "began": False}], False),
    ("x", [{**UNFIT, "event": "refused"}, {**FAILED, "began": False}], True),
    ("x", [{**UNFIT, "event": "silent"}, {**FAILED, "began": False}], False),
    ("TypeError: Can't load class x: it needs nvflare >=2.9,<2.10; got 2.8.3", [], True),
    (FULL, [], False),
])  # fmt: skip
def test_what_would_go_the_same_way_another_time_is_final(job, said, events, final, elsewhere):
    job.record(*events)
    job.log("server", line(3, "ServerRunner", RAISED.replace(FULL, said)))
    failure = job.why(elsewhere=elsewhere)
    assert failure.final == final and "correct its name" not in failure.reason
    assert (events or [{"reason": said}])[0]["reason"] in failure.reason


class TestByLogs:
    def test_the_party_that_complained_first_is_named_with_its_last_errors_and_notes(self, job):
        job.log("server", line(9, "ServerRunner", "result is bad"))
        file = job.log("a", *(line(n, "JsonScanner", f"error {n}") for n in range(1, 6)))
        failure = job.why()
        assert failure.reason.startswith(f"The log of a is {file}, and ends with\n")
        shown = failure.reason.splitlines()[1:]
        assert [said.split("error ")[-1] for said in shown] == list("345")
        assert not failure.final
        job.note("a", "train failed: image p17.png is truncated")
        assert "p17.png is truncated" in job.why().reason

    def test_the_servers_own_reason_is_said_before_a_long_error(self, job):
        job.log("server", line(2, "runner_process", "begin" + "x" * 5000 + "end"))
        job.record({"event": "failed", "reason": "too few sites"})
        reason = job.why(elsewhere=True).reason
        assert reason.startswith("too few sites\nThe log of server is ")
        assert "begin" in reason and "end\n" in reason and len(reason) < 1000

    def test_elsewhere_the_record_says_it_and_whose_log_is_to_be_read(self, job):
        job.log("server", line(2, "ServerRunner", "Aborting"))
        own = (
            f"A site's own log is <its workspace>/{JOB}/error_log.txt, and its notes "
            f"<its workspace>/local_notes/{JOB}.txt, at the site"
        )
        assert job.why(elsewhere=True).reason.endswith(f"{own}.")
        refused = {**REFUSED, "reason": "its own log says why"}
        job.record(refused, {"event": "failed", "reason": "x"})
        assert job.why(elsewhere=True).reason.splitlines() == [
            "b, round 1: its own log says why", "The server ended the run: x", f"{own}: b.",
        ]  # fmt: skip

    @pytest.mark.parametrize(("party", "second", "said", "reason"), [
        ("a", 5, "download aborted", "a process at b ended"),
        ("a", 5, RAISED, "a process at b ended"),
        ("server", 6, "Aborting", "a process at b ended"),
        ("server", 3, "the disk is full", "The log of server is"),
        ("b", 6, "out of memory", "The log of b is"),
        ("b", 6, RAISED, f"b: {FULL}. Make room on that disk"),
    ])  # fmt: skip
    def test_after_a_process_ended_only_its_own_site_or_who_complained_before_is_the_reason(
        self, job, party, second, said, reason
    ):
        job.lose_b()
        without = job.why().reason
        assert "a process at b ended" in without and "could it not load the job?" in without
        assert str(job.workspaces["server"] / "log.txt") in without
        job.log(party, line(second, "ClientRunner", said))
        assert reason in job.why().reason

    def test_where_the_servers_process_ended_no_site_is_blamed(self, job):
        job.lose_b()
        ended = line(3, "ServerEngine", f"Job: {JOB} child process exit with return code 1", "INFO")
        log = job.workspaces["server"] / "log.txt"
        log.write_text(ended + log.read_text())
        job.log("a", line(5, "ClientRunner", "COMMUNICATION_ERROR"))
        assert "a process at the server ended" in job.why().reason

    @pytest.mark.parametrize(("owing", "named"), [
        ("b", "at b ('train'), which had a task"),
        ("ab", "at a ('train'), b ('train'), which"),
        ("", "a process of the job ended"),
    ])  # fmt: skip
    def test_elsewhere_who_did_not_give_its_task_back_is_named(self, job, owing, named):
        job.owe(*owing)
        assert named in job.why(elsewhere=True).reason
        job.lose_b()
        assert "a process at b ended" in job.why().reason

    def test_who_is_lost_is_named_where_the_record_speaks_of_others_too(self, job):
        job.lose_b()
        job.record({**REFUSED, "site": "a", "reason": "NaN"})
        assert job.why().reason.startswith("a process at b ended.\na, round 1: NaN")

    def test_rounds_that_the_record_has_count_where_nobody_saw_them(self, job):
        job.record({"event": "round", "round": 0})
        assert not job.why("FINISHED:ABNORMAL").final
