import re
import shutil
import time
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from rich.console import Console

import tiny_job
from cxr_deployment import deployed_run, job_watch, local_workspaces
from cxr_deployment.deployed_run import DeployedRun, DeployedRunError
from cxr_deployment.flare_session import SessionError
from cxr_study.common.progress import Steps
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import read_facts
from cxr_study.runs.job_results import Progress
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

SITES = {"north": {}, "south": {}}
GONE = SessionError("no FLARE server answers")


class Session:
    """A session with a server where jobs end as planned: (status, rounds made).

    A job that is "lost" is listed as running, because the server was restarted; so is one that is
    "mute", which does not report its rounds; one that is "not taken" cannot be submitted. A status
    may be an error. The run is to make `planned` rounds, and starts from a model of 20.
    """

    patience = 0.0
    deaf = False  # whether a job ignores an abort

    def __init__(self, plan, kit=None, planned=10, present=SITES):
        self.plan, self.kit, self.planned = list(plan), kit, planned
        self.present, self.jobs, self.aborted = set(present), [], []

    def missing(self, sites, patience=0.0):
        return sorted({*sites} - self.present)

    def submit(self, job):
        if self.plan[len(self.jobs)][0] == "not taken":
            raise GONE
        self.jobs.append({"folder": job, **Job.from_folder(job).settings})
        self.left = job
        return f"job-{len(self.jobs)}"

    def meta(self, job_id):
        status, _ = self.plan[len(self.jobs) - 1]
        if not isinstance(status, str):
            raise status
        status = "RUNNING" if status in ("lost", "mute") else status
        meta = {"deploy_map": {"app": list(SITES)}, "job_deploy_detail": ["nih: OK"]}
        return {**meta, "last_schedule_time": 1.0, "min_clients": 2, "status": status}

    def server_started(self):
        return 2.0

    def stats(self, job_id):
        status, rounds = self.plan[len(self.jobs) - 1]
        record = {"rounds": rounds, "best": None, "stopped": False}
        return {"RunRecord": record} if status == "lost" else {}

    def abort(self, job_id):
        self.aborted.append(job_id)
        return "RUNNING" if self.deaf else "FINISHED:ABORTED"

    def download(self, job_id, folder):
        self.leave(len(self.jobs), folder / job_id / "workspace")
        shutil.copytree(self.left, folder / job_id / "job/surgical")
        return folder / job_id

    def leave(self, number, server):
        """What a job leaves, in its folder."""
        server.mkdir(parents=True)
        rounds = [rounds for _, rounds in self.plan[:number]]
        if not rounds[-1] and sum(rounds) < self.planned:
            return
        ends = [20, *(20 + sum(rounds[:made]) for made in range(1, number))]
        spans = zip([0, *ends], ends, strict=False)
        names = ["another", *(f"job-{earlier}" for earlier in range(1, number))]
        manifest = {
            "job": f"job-{number}", "round": 20 + sum(rounds), "planned_rounds": 20 + self.planned,
            "history": [{"job": j, "rounds": r} for j, r in zip(names, spans, strict=True)],
        }  # fmt: skip
        save(Checkpoint({"x": np.zeros(1)}, manifest), server / "models/last.npz")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(job_watch, "POLL", 0.0)
    monkeypatch.setattr(job_watch, "_QUIET", 0.0)


@pytest.fixture
def go(tmp_path):
    """Runs a job whose attempts end as planned; the session, and what it left or raised."""

    def go(*plan, name="surgical", settings=None, begun=(), had=True, of_run=None, **of_session):
        """`begun`: jobs of an earlier command; `had`: whether their job folder exists."""
        settings = settings or ({"num_rounds": 10} if name == "surgical" else {})
        job = tiny_job.make(tmp_path, SITES, job=name, settings=settings)
        session = Session(plan, tmp_path / "lead", **of_session)
        session.jobs, session.left = [{} for _ in begun], shutil.copytree(job, tmp_path / "sent")
        if not had:
            shutil.rmtree(job)
        quick = {"sites_timeout": 0.2, "pauses": [0.0], "jobs": begun}
        session.output = StringIO()
        steps = Steps(Console(file=session.output, width=300))
        try:
            DeployedRun(session, steps, tmp_path, **{**quick, **(of_run or {})}).run()
        except (DeployedRunError, SessionError, KeyboardInterrupt) as error:
            return session, error
        return session, read_facts(tmp_path).jobs

    return go


def asked(session):
    """Of each job that was submitted, what it continues, and its rounds; 0: those missing."""
    return [(job.get("continues"), job.get("num_rounds")) for job in session.jobs]


BROKE = "FINISHED:EXECUTION_EXCEPTION"
DONE = "FINISHED:COMPLETED"
FIRST, SECOND, THIRD = ("", 10), ("job-1", 0), ("job-2,job-1", 0)
BY_HAND = {"continues": "job-a", "num_rounds": 0}


def failed(number, rounds):
    return f"DeployedRunError: job job-{number} failed after {rounds} of 10 rounds: "


RUNS = {
    "ends well": ([(DONE, 10)], {}, [FIRST], [1]),
    "breaks": ([(BROKE, 3), (BROKE, 2), (DONE, 5)], {}, [FIRST, SECOND, THIRD], [1, 2, 3]),
    "breaks, and the next makes no round":
        ([(BROKE, 3), (BROKE, 0), (DONE, 7)], {}, [FIRST, SECOND, SECOND], [1, 3]),
    "ends well without all its rounds": ([(DONE, 3), (DONE, 7)], {}, [FIRST, SECOND], [1, 2]),
    "stops early": ([(DONE, 3)], {"planned": 3}, [FIRST], [1]),
    "breaks in the test": ([(BROKE, 10), (DONE, 0)], {}, [FIRST, SECOND], [1, 2]),
    "a site does not come": ([(DONE, 10)], {"present": ["north"]}, [FIRST], [1]),
    "continues another, and makes no round":
        ([(BROKE, 0), (DONE, 10)], {"settings": BY_HAND}, [("job-a", 0)] * 2, [2]),
    "continues another for rounds of its own, and makes none at first":
        ([(BROKE, 0), (BROKE, 4), (DONE, 6)], {"settings": {**BY_HAND, "num_rounds": 10}},
         [("job-a", 10), ("job-a", 10), ("job-2,job-a", 0)], [2, 3]),
    "trains nothing": ([(DONE, 0)], {"name": "evaluation"}, [(None, None)], [1]),
    "is lost elsewhere": ([("lost", 4), (DONE, 6)], {}, [FIRST, SECOND], [2]),
    "is lost there without a word": ([("mute", 4), (DONE, 6)], {}, [FIRST, SECOND], [2]),
    "is lost before it began":
        ([("mute", 0), (DONE, 10)], {"of_run": {"workspaces": {"server": Path("no")}}},
         [FIRST, SECOND], [2]),
    "is lost, and not to be continued":
        ([("lost", 4)], {"of_run": {"retries": 0}}, [FIRST], failed(1, 4)),
    "makes no round": ([(BROKE, 0)], {}, [FIRST], failed(1, 0)),
    "continues another, and may not try again":
        ([(BROKE, 0)], {"settings": BY_HAND, "of_run": {"retries": 0}}, [("job-a", 0)],
         "DeployedRunError: job job-1 failed after 0 of an unknown number of rounds: "),
    "breaks too often":
        ([(BROKE, 3), (BROKE, 2)], {"of_run": {"retries": 1}}, [FIRST, SECOND], failed(2, 5)),
    "aborted":
        ([("FINISHED:ABORTED", 3)], {}, [FIRST],
         f"{failed(1, 3)}it was aborted by an admin. Resume: .*--set continues=job-1 and"),
    "the server is gone":
        ([(BROKE, 2), (GONE, 0)], {}, [FIRST, SECOND],
         "DeployedRunError: no FLARE server answers\nJob job-2 is no longer watched.*"
         "--set continues=job-2,job-1 and --set num_rounds=0"),
    "a second job is not taken":
        ([(BROKE, 2), ("not taken", 0)], {}, [FIRST], "DeployedRunError: .*continues=job-1 and"),
    "the first job is not taken":
        ([("not taken", 0)], {}, [], "SessionError: no FLARE server answers$"),
}  # fmt: skip
"""What happens -> how each job ends and its rounds, more, what is asked for, the jobs kept or the
error."""


@pytest.mark.parametrize(("plan", "more", "wanted", "end"), RUNS.values(), ids=RUNS)
def test_a_run_has_as_many_jobs_as_it_needs_and_may_have(go, tmp_path, plan, more, wanted, end):
    session, found = go(*plan, **more)
    assert asked(session) == wanted
    waiting = "waiting up to 0.2 s (--sites-timeout) for south: not connected\n"
    waited = session.output.getvalue().startswith(waiting)
    assert waited == ("present" in more)
    if isinstance(end, str):
        assert re.match(end, f"{type(found).__name__}: {found}", re.S)
    else:
        assert found == [f"job-{number}" for number in end]


SAME_JOB = r"another --out \(it starts where this one did: no completed round"


@pytest.mark.parametrize(("made", "settings", "advice"), [
    (0, {}, SAME_JOB),
    (2, {}, "--set continues=job-1 and --set num_rounds=0"),
    (0, BY_HAND, SAME_JOB),
    (1, BY_HAND, "--set continues=job-1,job-a and"),
])  # fmt: skip
def test_an_interrupt_aborts_a_job_and_says_how_to_resume(go, monkeypatch, made, settings, advice):
    def interrupted(session, job_id, show, say, *, server):
        show(Progress(made))
        raise KeyboardInterrupt

    monkeypatch.setattr(job_watch, "watch", interrupted)
    session, error = go((DONE, 0), settings=settings)
    assert isinstance(error, KeyboardInterrupt) and session.aborted == ["job-1"]
    assert re.search(f"job-1 was aborted. .*{advice}", session.output.getvalue())


def test_a_job_that_does_not_end_when_it_is_aborted_is_reported_as_running(go, monkeypatch):
    monkeypatch.setattr(job_watch, "watch", Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(Session, "deaf", True)
    session, _ = go(("mute", 0))
    assert "abort of job job-1 was requested; it is still RUNNING" in session.output.getvalue()


def test_how_a_job_broke_is_kept_for_the_report(go, tmp_path):
    go((BROKE, 3), (BROKE, 2), (DONE, 5))
    one, other = read_facts(tmp_path).breaks
    assert re.match("job job-1 failed after 3 of 10 rounds: .", one) and "job-2 failed" in other


def test_a_job_that_the_server_lost_is_continued_by_what_is_on_its_disk(go, tmp_path):
    workspace = tmp_path / "server"
    Session([("lost", 4)]).leave(1, workspace / "job-1")
    (workspace / "job-1/models/.last.npz.half").touch()
    (workspace / "job-1/stats.tmp").touch()
    own = tmp_path / "north/checkpoints/job-2/site_best.npz"
    own.parent.mkdir(parents=True)
    own.touch()
    places = {"server": workspace, "north": tmp_path / "north", "south": tmp_path / "south"}
    session, jobs = go(("lost", 4), (DONE, 6), of_run={"workspaces": places})
    assert asked(session) == [FIRST, SECOND]
    assert jobs == ["job-1", "job-2"]
    assert [path.name for path in (tmp_path / "sites").rglob("*.npz")] == ["site_best.npz"]
    copy = tmp_path / "results/job-1/workspace"  # as a download, without what changes
    assert [path.name for path in copy.rglob("*") if path.is_file()] == ["last.npz"]


@pytest.mark.parametrize(("plan", "more", "wanted", "jobs"), [
    ([(DONE, 10)], {}, [], ["job-1"]),
    ([(DONE, 10)], {"had": False}, [], ["job-1"]),
    ([(BROKE, 4), (DONE, 6)], {"had": False}, [SECOND], ["job-1", "job-2"]),
    ([("gone", 4), (BROKE, 3), (DONE, 3)], {"begun": ["job-1", "job-2"]}, [THIRD],
     ["job-2", "job-3"]),
    ([("mute", 4)], {"had": False}, [], "not on this machine. Resume: .*continues=job-1 and"),
])  # fmt: skip
def test_jobs_of_an_earlier_command_are_seen_to_their_end(go, plan, more, wanted, jobs):
    session, found = go(*plan, **{"begun": ["job-1"], **more})
    assert asked(session)[len(more.get("begun", "1")) :] == wanted
    assert found == jobs or re.search(jobs, str(found))


def test_an_id_is_on_record_before_the_job_is_waited_for(go, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        assert read_facts(tmp_path).jobs == ["job-1"]
        raise KeyboardInterrupt

    monkeypatch.setattr(job_watch, "watch", interrupted)
    session, error = go((DONE, 0), of_run={"aborts": False})
    assert isinstance(error, KeyboardInterrupt) and session.aborted == []
    assert "job job-1 continues without this command" in session.output.getvalue()


@pytest.mark.parametrize(("full", "end"), [
    ([True], local_workspaces.DiskFullError),
    ([False, True], "There is no further attempt: 200 MB must"),
    ([False, True, False], ["job-1", "job-2"]),
])  # fmt: skip
def test_nothing_is_submitted_onto_a_full_disk(go, tmp_path, monkeypatch, full, end):
    """A disk is looked at before the first job, and from the pause before the second on."""
    times = iter([*full, *[full[-1]] * 99])
    monkeypatch.setattr(local_workspaces, "free_bytes", lambda _: 0 if next(times) else 2**40)
    plan = [(BROKE, 4), (DONE, 6)]
    if end is local_workspaces.DiskFullError:
        with pytest.raises(end, match=r"200 MB must be free for a job; this run \(.* 0 MB"):
            go(*plan)
        return
    times = iter([False, *full, *[full[-1]] * 99])
    monkeypatch.setattr(Session, "patience", 0.0 if isinstance(end, str) else 60.0)
    session, found = go(*plan, of_run={"workspaces": {"server": tmp_path}})
    assert found == end or (end in str(found) and len(session.jobs) == 1)


def test_pauses_grow_and_are_made(go, monkeypatch):
    slept = []
    clock = SimpleNamespace(sleep=slept.append, monotonic=time.monotonic)  # this module's alone
    monkeypatch.setattr(deployed_run, "time", clock)
    go(*[(BROKE, 1)] * 4, (DONE, 6), of_run={"pauses": [60, 120], "retries": 4})
    assert [seconds for seconds in slept if seconds] == [60, 120, 120, 120]
