import json

import pytest

from cxr_study.deployment.job_failure import explain
from cxr_study.deployment.job_watch import End, Progress
from surgical_aggregation.site.executor import CANNOT_TAKE_PART

JOB = "1234"
RAISED = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n{}\n'
FULL = "OSError: [Errno 28] No space left on device"
REFUSED = {"event": "refused", "site": "b", "round": 1, "task": "train"}
ERROR = "2026-01-02 03:04:{:02},000 - {} - ERROR - {}\n"


@pytest.fixture
def workspaces(tmp_path):
    """Workspaces of a server and two sites, with empty logs."""
    workspaces = {name: tmp_path / name for name in ("server", "a", "b")}
    for workspace in workspaces.values():
        (workspace / JOB).mkdir(parents=True)
        (workspace / JOB / "error_log.txt").touch()
    return workspaces


@pytest.fixture
def result(tmp_path):
    """The server's folder of the downloaded job."""
    folder = tmp_path / "result"
    folder.mkdir()
    return folder


def record(folder, *events):
    text = "".join(json.dumps(event) + "\n" for event in ({"event": "started"}, *events))
    folder.joinpath("run_record.jsonl").write_text(text)


def log(folder, *lines):
    path = folder / "error_log.txt"
    path.write_text("".join(lines))
    return path


def note(workspace, text):
    path = workspace / f"local_notes/{JOB}.txt"
    path.parent.mkdir()
    path.write_text(ERROR.format(2, "surgical_aggregation", text))


def note_lost_site(server):
    """The server notes that the process of site b ended ill, in second 4."""
    reason = f"Failing job {JOB} due to reported failure from b: exception"
    (server / "log.txt").write_text(
        f"2026-01-02 03:04:04,000 - FederatedServer - INFO - {reason}\n"
    )


def why(status="FINISHED:EXECUTION_EXCEPTION", *, lost=False, server=None, workspaces=None, **meta):
    deployed = {"deploy_map": {"app_server": ["server"], "app_client": ["a", "b"]}}
    end = End({"status": status, "min_clients": 2, **deployed, **meta}, lost, Progress())
    return explain(JOB, end, server, workspaces or {})


@pytest.mark.parametrize(
    ("status", "facts", "said", "final"),
    [
        ("FINISHED:ABORTED", {}, "it was aborted by an admin.", True),
        (
            "FINISHED:FAILED_TO_RUN",
            {"job_deploy_detail": ["server: OK", "a: OK", "b: BYOC not permitted", "1 < 2"]},
            "it could not be started: b: BYOC not permitted; 1 < 2",
            True,
        ),
        ("RUNNING", {"lost": True}, "the server was restarted under it", False),
    ],
)
def test_some_reasons_stand_in_what_flare_knows(status, facts, said, final):
    failure = why(status, **facts)
    assert failure.reason.startswith(said) and failure.final == final


@pytest.mark.parametrize(
    ("needed", "begin"), [(2, "b cannot take part: no file x\nIts notes are "), (1, "The log of s")]
)
def test_a_site_that_cannot_take_part_is_the_reason_where_too_few_are_left(
    workspaces, result, needed, begin
):
    log(result, ERROR.format(3, "ServerRunner", "the disk is full"))
    note(workspaces["b"], f"{CANNOT_TAKE_PART}no file x")
    failure = why(server=result, workspaces=workspaces, min_clients=needed)
    assert failure.reason.startswith(begin) and failure.final == (needed == 2)
    assert "b cannot take part: no file x\nIts notes are " in failure.reason
    record(result, {**REFUSED, "reason": "own log"}, {"event": "failed", "reason": "disk full"})
    assert "own log" not in why(server=result, workspaces=workspaces, min_clients=1).reason


class TestByLogs:
    def test_the_party_that_complained_first_is_named_with_its_last_errors(
        self, workspaces, result
    ):
        log(result, ERROR.format(9, "ServerRunner", "result is bad"))
        errors = [ERROR.format(n, "JsonScanner", f"error {n}") for n in range(1, 6)]
        file = log(workspaces["a"] / JOB, *errors)
        failure = why(server=result, workspaces=workspaces)
        assert failure.reason.startswith(f"The log of a is {file}, and ends with\n")
        assert [line.split("error ")[-1] for line in failure.reason.splitlines()[1:]] == list("345")
        assert not failure.final

    def test_what_a_site_keeps_to_itself_is_among_its_errors_where_it_is_at_hand(
        self, workspaces, result
    ):
        log(workspaces["a"] / JOB, ERROR.format(2, "KerasExecutor", "train failed"))
        note(workspaces["a"], "train failed: image p17.png is truncated")
        log(result, ERROR.format(3, "ServerRunner", "Aborting"))
        assert "p17.png is truncated" in why(server=result, workspaces=workspaces).reason

    def test_the_servers_own_reason_is_said_before_a_long_error(self, result):
        log(result, ERROR.format(2, "runner_process", "begin" + "x" * 5000 + "end"))
        record(result, {"event": "failed", "reason": "too few sites"})
        reason = why(server=result).reason
        assert reason.startswith("too few sites\nThe log of server is ")
        assert "begin" in reason and "end\n" in reason and len(reason) < 1000

    def test_a_sites_own_exception_is_said_first_where_it_is_at_hand(self, workspaces, result):
        log(result, ERROR.format(2, "ServerRunner", "Aborting"))
        file = log(workspaces["b"] / JOB, ERROR.format(1, "ClientRunner", RAISED.format(FULL)))
        record(result, {"event": "failed", "reason": "Result from b is bad"})
        assert why(server=result, workspaces=workspaces).reason.splitlines() == [
            f"b: {FULL}. Make room on that disk, and go on with the run.",
            f"The log of b is {file}",
            "The server ended the run: Result from b is bad",
        ]

    def test_elsewhere_the_record_says_it_and_whose_log_is_to_be_read(self, result):
        log(result, ERROR.format(2, "ServerRunner", "Aborting"))
        own = (
            f"A site's own log is <its workspace>/{JOB}/error_log.txt, and its notes "
            f"<its workspace>/local_notes/{JOB}.txt, at the site"
        )
        assert why(server=result).reason.endswith(f"{own}.")
        reason = {**REFUSED, "reason": "its own log says why"}
        record(result, reason, {"event": "failed", "reason": "x"})
        assert why(server=result).reason.splitlines() == [
            "b, round 1: its own log says why",
            "The server ended the run: x",
            f"{own}: b.",
        ]

    def test_a_process_that_ended_without_a_word_is_placed(self, workspaces, result):
        note_lost_site(workspaces["server"])
        reason = why(server=result, workspaces=workspaces).reason
        assert "a process at b ended" in reason and "could it not load the job?" in reason
        assert str(workspaces["server"] / "log.txt") in reason

    @pytest.mark.parametrize(
        ("party", "second", "said", "reason"),
        [
            ("a", 5, "download aborted", "a process at b ended"),
            ("a", 5, RAISED.format(FULL), "a process at b ended"),
            ("server", 6, "Aborting", "a process at b ended"),
            ("server", 3, "the disk is full", "The log of server is"),
            ("b", 6, "out of memory", "The log of b is"),
        ],
    )
    def test_after_a_process_ended_only_its_own_site_or_who_complained_before_is_the_reason(
        self, workspaces, result, party, second, said, reason
    ):
        note_lost_site(workspaces["server"])
        folder = result if party == "server" else workspaces[party] / JOB
        log(folder, ERROR.format(second, "ClientRunner", said))
        assert reason in why(server=result, workspaces=workspaces).reason
