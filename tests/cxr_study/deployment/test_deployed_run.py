import json
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import tiny_job
from cxr_study import job_folder
from cxr_study.deployment import deployed_run, job_watch
from cxr_study.deployment.deployed_run import DeployedRun, DeployedRunError, run
from cxr_study.deployment.steps import Steps
from surgical_aggregation.checkpoint import Checkpoint, save

SITES = {"north": {}, "south": {}}


class Session:
    """A session with a server where jobs end as planned: (status, rounds made).

    A job that is "lost" runs for ever, for the server has been restarted.
    """

    def __init__(self, plan, kit):
        self.plan = list(plan)
        self.kit = kit
        self.jobs = []
        self.aborted = []
        self.present = set(SITES)
        self.stopped = False

    def sites(self):
        return self.present

    def submit(self, job):
        self.jobs.append({"folder": job, **job_folder.knobs(job)})
        return f"job-{len(self.jobs)}"

    def meta(self, job_id):
        status, _ = self.plan[len(self.jobs) - 1]
        if status is KeyboardInterrupt:
            raise status
        return {"status": "RUNNING" if status == "lost" else status, "last_schedule_time": 1.0}

    def server_started(self):
        return 2.0

    def abort(self, job_id):
        self.aborted.append(job_id)

    def download(self, job_id, folder):
        self.leave(job_id, folder / job_id / "workspace")
        return folder / job_id

    def leave(self, job_id, server):
        """What a job leaves, in its folder."""
        rounds = self.plan[len(self.jobs) - 1][1]
        made = sum(rounds for _, rounds in self.plan[: len(self.jobs)])
        server.mkdir(parents=True)
        events = [{"event": "stopped"}] if self.stopped else []
        (server / "run_record.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
        if rounds:
            (server / "models").mkdir()
            history = [{"job": "job-0", "rounds": [0, made - rounds]}] if made > rounds else []
            manifest = {"job": job_id, "round": made, "history": history}
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

    def go(*plan, present=SITES, stopped=False, places=None, **arguments):
        session = Session(plan, tmp_path / "lead")
        session.present, session.stopped = set(present), stopped
        deployed = DeployedRun(job, tmp_path / "results", places=places or {}, **arguments)
        try:
            return session, run(deployed, session, Steps(Console(file=StringIO())))
        except (DeployedRunError, KeyboardInterrupt) as error:
            return session, error

    return go


BROKE = "FINISHED:EXECUTION_EXCEPTION"
DONE = "FINISHED:COMPLETED"


class TestRun:
    def test_a_job_that_ends_well_is_submitted_once(self, go, tmp_path):
        session, servers = go((DONE, 10))
        assert servers == (tmp_path / "results/job-1/workspace",)
        assert [job["continues"] for job in session.jobs] == [""]

    def test_a_job_that_breaks_is_continued_by_the_rounds_that_are_missing(self, go):
        session, servers = go((BROKE, 3), (BROKE, 2), (DONE, 5))
        assert len(servers) == 3
        asked = [(job["continues"], job["num_rounds"]) for job in session.jobs]
        assert asked == [("", 10), ("job-1", 7), ("job-2", 5)]

    def test_a_job_that_breaks_before_a_round_was_made_is_given_up(self, go):
        session, error = go((BROKE, 0), (DONE, 10))
        assert isinstance(error, DeployedRunError) and len(session.jobs) == 1

    def test_where_a_continued_job_makes_no_round_the_one_before_is_continued_again(self, go):
        session, servers = go((BROKE, 3), (BROKE, 0), (DONE, 7))
        asked = [(job["continues"], job["num_rounds"]) for job in session.jobs]
        assert asked == [("", 10), ("job-1", 7), ("job-1", 7)]
        assert [server.parent.name for server in servers] == ["job-1", "job-3"]

    def test_it_is_continued_so_often_and_no_more(self, go):
        session, error = go((BROKE, 1), (BROKE, 1), retries=1)
        assert isinstance(error, DeployedRunError) and len(session.jobs) == 2

    @pytest.mark.parametrize("status", ["FINISHED:ABORTED", "FINISHED:FAILED_TO_RUN"])
    def test_what_would_end_the_same_way_is_not_tried_again(self, go, status):
        session, error = go((status, 3))
        assert isinstance(error, DeployedRunError) and len(session.jobs) == 1

    def test_a_job_that_ended_well_without_all_its_rounds_has_not(self, go):
        session, _ = go((DONE, 3), (DONE, 7))
        assert len(session.jobs) == 2

    def test_a_job_that_stopped_early_has_all_its_rounds(self, go):
        session, servers = go((DONE, 3), stopped=True)
        assert len(servers) == len(session.jobs) == 1

    def test_after_all_rounds_there_is_nothing_to_continue(self, go):
        session, error = go((BROKE, 10))
        assert isinstance(error, DeployedRunError) and len(session.jobs) == 1

    def test_a_job_that_the_server_lost_is_continued_by_what_is_on_its_disk(self, go, tmp_path):
        place = tmp_path / "server"

        maker = Session([("lost", 4)], None)
        maker.jobs = [None]
        maker.leave("job-1", place / "job-1")
        session, servers = go(("lost", 4), (DONE, 6), places={"server": place})
        assert [job["num_rounds"] for job in session.jobs] == [10, 6]
        assert [path.parent.name for path in servers] == ["job-1", "job-2"]

    def test_elsewhere_a_lost_job_is_continued_by_what_it_told(self, go, monkeypatch):
        ends = iter([("RUNNING", True, 4), (DONE, False, 6)])

        def watch(session, job_id, show, *, server):
            assert server is None
            status, lost, rounds = next(ends)
            return job_watch.End({"status": status}, lost, job_watch.Progress(rounds))

        monkeypatch.setattr(job_watch, "watch", watch)
        session, servers = go(("lost", 4), (DONE, 6))
        assert [job["num_rounds"] for job in session.jobs] == [10, 6]
        assert [path.parent.name for path in servers] == ["job-2"]

    def test_an_interrupt_aborts_the_job(self, go):
        session, error = go((KeyboardInterrupt, 0))
        assert isinstance(error, KeyboardInterrupt) and session.aborted == ["job-1"]

    def test_a_site_that_does_not_come_is_left_to_flare(self, go):
        _, servers = go((DONE, 10), present=["north"])
        assert len(servers) == 1

    def test_a_job_without_rounds_is_done_when_it_has_ended(self, go, monkeypatch):
        monkeypatch.setattr(DeployedRun, "num_rounds", 0)
        _, servers = go((DONE, 0))
        assert len(servers) == 1
