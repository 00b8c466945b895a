from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import tiny_job
from cxr_study.common.progress import Steps
from cxr_study.deployment import deployed_run, job_watch
from cxr_study.deployment.deployed_run import (
    DeployedRun,
    DeployedRunError,
    Rounds,
    attend,
    rounds_left,
    run,
)
from cxr_study.deployment.flare_session import SessionError
from cxr_study.deployment.job_watch import End, Progress
from cxr_study.jobs import job_folder
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

SITES = {"north": {}, "south": {}}


class Session:
    """A session with a server where jobs end as planned: (status, rounds made).

    A job that is "lost" runs for ever, for the server has been restarted. A status may be an error.
    The run is to make `planned` rounds, and starts from a model that has been through 20.
    """

    planned = 10

    def __init__(self, plan, kit):
        self.plan = list(plan)
        self.kit = kit
        self.jobs = []
        self.aborted = []
        self.present = set(SITES)

    def sites(self):
        return self.present

    def submit(self, job):
        self.jobs.append({"folder": job, **job_folder.read_settings(job)})
        return f"job-{len(self.jobs)}"

    def meta(self, job_id):
        status, _ = self.plan[len(self.jobs) - 1]
        if not isinstance(status, str):
            raise status
        meta = {"last_schedule_time": 1.0, "deploy_map": {"app": list(SITES)}, "min_clients": 2}
        return {**meta, "status": "RUNNING" if status == "lost" else status}

    def server_started(self):
        return 2.0

    def abort(self, job_id):
        self.aborted.append(job_id)

    def download(self, job_id, folder):
        self.leave(len(self.jobs), folder / job_id / "workspace")
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
    monkeypatch.setattr(deployed_run, "_SITES_PATIENCE", 0.2)


@pytest.fixture
def job(tmp_path):
    return tiny_job.make(tmp_path / "tiny", SITES, settings={"num_rounds": 10})


@pytest.fixture
def go(job, tmp_path):
    """Runs a job whose attempts end as planned; the session, and what it left or raised."""

    def go(*plan, present=SITES, planned=10, workspaces=None, **arguments):
        session = Session(plan, tmp_path / "lead")
        session.present, session.planned = set(present), planned
        arguments = {"job": job, "workspaces": workspaces or {}, **arguments}
        deployed = DeployedRun(folder=tmp_path / "results", **arguments)
        try:
            return session, run(deployed, session, Steps(Console(file=StringIO())))
        except (DeployedRunError, KeyboardInterrupt) as error:
            return session, error

    return go


BROKE = "FINISHED:EXECUTION_EXCEPTION"
DONE = "FINISHED:COMPLETED"


def asked(session):
    """Of each job that was submitted, what it continues, and its rounds; 0: those missing."""
    return [(job["continues"], job["num_rounds"]) for job in session.jobs]


MADE = {
    "ends well": ([(DONE, 10)], {}, [("", 10)], [1]),
    "breaks": (
        [(BROKE, 3), (BROKE, 2), (DONE, 5)], {}, [("", 10), ("job-1", 0), ("job-2,job-1", 0)],
        [1, 2, 3],
    ),
    "breaks, and the next makes no round": (
        [(BROKE, 3), (BROKE, 0), (DONE, 7)], {}, [("", 10), ("job-1", 0), ("job-1", 0)], [1, 3],
    ),
    "ends well without all its rounds": (
        [(DONE, 3), (DONE, 7)], {}, [("", 10), ("job-1", 0)], [1, 2],
    ),
    "stops early": ([(DONE, 3)], {"planned": 3}, [("", 10)], [1]),
    "breaks in the test": ([(BROKE, 10), (DONE, 0)], {}, [("", 10), ("job-1", 0)], [1, 2]),
    "a site does not come": ([(DONE, 10)], {"present": ["north"]}, [("", 10)], [1]),
}  # fmt: skip
"""What happens -> how each job ends and its rounds, more, what is asked for, the jobs kept."""

GIVEN_UP = {
    "before a round was made": ([(BROKE, 0), (DONE, 10)], {}, 1, "after 0 of 10 rounds: "),
    "after so many tries": (
        [(BROKE, 3), (BROKE, 2), (DONE, 5)], {"retries": 1}, 2, "after 5 of 10 rounds: ",
    ),
    "aborted": ([("FINISHED:ABORTED", 3)], {}, 1, "after 3 of 10 rounds: "),
    "never started": ([("FINISHED:FAILED_TO_RUN", 3)], {}, 1, "after 3 of 10 rounds: "),
}  # fmt: skip


class TestRun:
    @pytest.mark.parametrize(("plan", "more", "wanted", "kept"), MADE.values(), ids=MADE)
    def test_a_run_is_made_by_as_many_jobs_as_it_needs(
        self, go, tmp_path, plan, more, wanted, kept
    ):
        session, servers = go(*plan, **more)
        assert asked(session) == wanted
        results = tmp_path / "results"
        assert list(servers) == [results / f"job-{number}/workspace" for number in kept]

    @pytest.mark.parametrize(("plan", "more", "jobs", "said"), GIVEN_UP.values(), ids=GIVEN_UP)
    def test_what_would_end_the_same_way_is_given_up(self, go, plan, more, jobs, said):
        session, error = go(*plan, **more)
        assert isinstance(error, DeployedRunError) and len(session.jobs) == jobs
        assert str(error).startswith(f"job job-{jobs} failed {said}")

    def test_a_job_that_the_server_lost_is_continued_by_what_is_on_its_disk(self, go, tmp_path):
        workspace = tmp_path / "server"
        Session([("lost", 4)], None).leave(1, workspace / "job-1")
        (workspace / "job-1/models/.last.npz.half").touch()
        (workspace / "job-1/stats.tmp").touch()
        session, servers = go(("lost", 4), (DONE, 6), workspaces={"server": workspace})
        assert asked(session) == [("", 10), ("job-1", 0)]
        assert [path.parent.name for path in servers] == ["job-1", "job-2"]
        copy = servers[0]
        assert copy == tmp_path / "results/job-1/workspace"  # as a download, without what changes
        assert [path.name for path in copy.rglob("*") if path.is_file()] == ["last.npz"]

    @pytest.mark.parametrize("told", [0, 4])
    @pytest.mark.parametrize("known", [False, True])  # of a job that had not begun there
    def test_elsewhere_a_lost_job_is_continued_however_old_its_last_word_is(
        self, go, monkeypatch, tmp_path, told, known
    ):
        ends = iter([("RUNNING", True, told), (DONE, False, 6)])

        def watch(session, job_id, show, *, server):
            status, lost, rounds = next(ends)
            meta = {"status": status, "deploy_map": {}, "min_clients": 2}
            return End(meta, lost, Progress(rounds))

        monkeypatch.setattr(job_watch, "watch", watch)
        session, servers = go(
            ("lost", 4), (DONE, 6), workspaces={"server": tmp_path / "no"} if known else {}
        )
        assert asked(session) == [("", 10), ("job-1", 0)]
        assert [path.parent.name for path in servers] == ["job-2"]

    def test_a_server_that_is_gone_for_good_leaves_the_job_and_the_way_on(self, go):
        _, error = go((BROKE, 2), (SessionError("no FLARE server answers"), 0))
        assert isinstance(error, DeployedRunError)
        assert str(error).startswith("no FLARE server answers\nJob job-2 is left to itself")
        assert "--set continues=job-2,job-1 and --set num_rounds=0" in str(error)

    @pytest.mark.parametrize("made", [0, 1])
    def test_a_job_that_the_server_does_not_take_is_a_mistake_if_it_is_the_first(
        self, go, monkeypatch, made
    ):
        submit = Session.submit

        def refuse(session, job):
            if len(session.jobs) == made:
                raise SessionError("no FLARE server answers")
            return submit(session, job)

        monkeypatch.setattr(Session, "submit", refuse)
        if made:
            _, error = go((BROKE, 2), (DONE, 8))
            assert isinstance(error, DeployedRunError) and "continues=job-1 and" in str(error)
        else:
            with pytest.raises(SessionError):
                go((DONE, 10))

    def test_a_job_that_continues_another_is_continued_from_there_if_it_makes_no_round(
        self, go, tmp_path
    ):
        settings = {"continues": "job-a", "num_rounds": 0}
        job = tiny_job.make(tmp_path / "by-hand", SITES, settings=settings)
        session, _ = go((BROKE, 0), (DONE, 10), job=job)
        assert [job["continues"] for job in session.jobs] == ["job-a", "job-a"]

    def test_an_interrupt_aborts_the_job(self, go):
        session, error = go((KeyboardInterrupt(), 0))
        assert isinstance(error, KeyboardInterrupt) and session.aborted == ["job-1"]

    def test_a_job_that_trains_nothing_is_done_when_it_has_ended(self, go, tmp_path):
        job = tiny_job.make(tmp_path / "evaluation", SITES, job="evaluation")
        _, servers = go((DONE, 0), job=job)
        assert len(servers) == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (DONE, "watch     FINISHED:COMPLETED, 3 rounds seen"),
        (BROKE, "the disk is full"),
        (KeyboardInterrupt(), "KeyboardInterrupt()"),
    ],
)
def test_a_job_is_attended_to_its_end_and_the_reason_of_a_failure_fetched(
    tmp_path, monkeypatch, status, said
):
    def watch(session, job_id, show, *, server):
        show(Progress(3, {"value": 0.25}))
        if not isinstance(status, str):
            raise status
        return End({"status": status}, False, Progress(3))

    def download(job_id, folder):
        server = folder / job_id / "workspace"
        server.mkdir(parents=True)
        line = "2026-01-02 03:04:05,000 - ServerRunner - ERROR - the disk is full\n"
        (server / "error_log.txt").write_text(line)
        return folder / job_id

    monkeypatch.setattr(job_watch, "watch", watch)
    session, console = Session([], None), Console(file=StringIO(), width=200)
    session.download = download
    try:
        attend(session, "job", tmp_path, {}, Steps(console))
    except (DeployedRunError, KeyboardInterrupt) as error:
        console.print(repr(error))
    told = console.file.getvalue()
    assert told.startswith("round 3, best validation BCE 0.2500\n") and said in told
    assert session.aborted == []  # an interrupt leaves it to itself
    assert bool(list(tmp_path.iterdir())) == (status == BROKE)


PAST = [{"job": "a", "rounds": [0, 3]}, {"job": "b", "rounds": [3, 5]}]


@pytest.mark.parametrize(
    ("history", "jobs", "made"),
    [
        (PAST, {"c"}, 4),
        (PAST, {"b", "c"}, 6),
        (PAST, {"a", "b", "c"}, 9),
        (PAST, {"lost", "b"}, 6),
        ([], {"a"}, 9),
    ],
)
def test_rounds_of_a_run_are_those_of_its_own_jobs(tmp_path, history, jobs, made):
    assert rounds_left(tmp_path, jobs) is None is rounds_left(None, jobs)
    manifest = {"round": 9, "planned_rounds": 12, "history": history}
    save(Checkpoint({"x": np.zeros(1)}, manifest), tmp_path / "models/last.npz")
    rounds = rounds_left(tmp_path, jobs)
    assert rounds == Rounds(made, made + 3) and not rounds.all
    assert str(rounds) == f"{made} of {made + 3} rounds"
    assert str(Rounds(2, 0)) == "2 of an unknown number of rounds"
