from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import tiny_job
from cxr_study.common.progress import Steps
from cxr_study.deployment import deployed_run, job_watch
from cxr_study.deployment.deployed_run import DeployedRun, DeployedRunError, run
from cxr_study.deployment.flare_session import SessionError
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
        self.jobs.append({"folder": job, **job_folder.knobs(job)})
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
        (server / "models").mkdir()
        history = [{"job": "another", "rounds": [0, 20]}]
        for earlier in range(1, number):
            begin = history[-1]["rounds"][1]
            history.append(
                {"job": f"job-{earlier}", "rounds": [begin, begin + rounds[earlier - 1]]}
            )
        manifest = {
            "job": f"job-{number}", "history": history,
            "round": 20 + sum(rounds), "planned_rounds": 20 + self.planned,
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

    def go(*plan, present=SITES, planned=10, places=None, **arguments):
        session = Session(plan, tmp_path / "lead")
        session.present, session.planned = set(present), planned
        arguments = {"job": job, "places": places or {}, **arguments}
        deployed = DeployedRun(folder=tmp_path / "results", **arguments)
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
        assert asked == [("", 10), ("job-1", 0), ("job-2,job-1", 0)]

    def test_it_is_told_how_far_the_run_is(self, go):
        _, error = go((BROKE, 3), (BROKE, 2), retries=1)
        assert str(error).startswith("job job-2 failed after 5 of 10 rounds: ")

    def test_a_job_that_breaks_before_a_round_was_made_is_given_up(self, go):
        session, error = go((BROKE, 0), (DONE, 10))
        assert isinstance(error, DeployedRunError) and len(session.jobs) == 1

    def test_where_a_continued_job_makes_no_round_the_one_before_is_continued_again(self, go):
        session, servers = go((BROKE, 3), (BROKE, 0), (DONE, 7))
        asked = [(job["continues"], job["num_rounds"]) for job in session.jobs]
        assert asked == [("", 10), ("job-1", 0), ("job-1", 0)]
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
        session, servers = go((DONE, 3), planned=3)
        assert len(servers) == len(session.jobs) == 1

    def test_after_all_rounds_a_test_that_broke_is_made_up_for(self, go):
        session, servers = go((BROKE, 10), (DONE, 0))
        assert [job["continues"] for job in session.jobs] == ["", "job-1"]
        assert [path.parent.name for path in servers] == ["job-1", "job-2"]

    def test_a_job_that_the_server_lost_is_continued_by_what_is_on_its_disk(self, go, tmp_path):
        place = tmp_path / "server"
        Session([("lost", 4)], None).leave(1, place / "job-1")
        session, servers = go(("lost", 4), (DONE, 6), places={"server": place})
        assert [job["continues"] for job in session.jobs] == ["", "job-1"]
        assert [path.parent.name for path in servers] == ["job-1", "job-2"]

    @pytest.mark.parametrize("told", [0, 1, 4])
    def test_elsewhere_a_lost_job_is_continued_however_old_its_last_word_is(
        self, go, monkeypatch, told
    ):
        ends = iter([("RUNNING", True, told), (DONE, False, 6)])

        def watch(session, job_id, show, *, server):
            assert server is None
            status, lost, rounds = next(ends)
            return job_watch.End({"status": status}, lost, job_watch.Progress(rounds))

        monkeypatch.setattr(job_watch, "watch", watch)
        session, servers = go(("lost", 4), (DONE, 6))
        asked = [(job["continues"], job["num_rounds"]) for job in session.jobs]
        assert asked == [("", 10), ("job-1", 0)]
        assert [path.parent.name for path in servers] == ["job-2"]

    def test_a_server_that_is_gone_for_good_leaves_the_job_and_the_way_on(self, go):
        _, error = go((BROKE, 2), (SessionError("no FLARE server answers"), 0))
        assert isinstance(error, DeployedRunError)
        assert str(error).startswith("no FLARE server answers\nJob job-2 is left to itself")
        assert "--set continues=job-2,job-1 and --set num_rounds=0" in str(error)

    def test_one_that_is_gone_when_a_job_is_to_be_continued_does_too(self, go, monkeypatch):
        submit = Session.submit

        def once(session, job):
            if session.jobs:
                raise SessionError("no FLARE server answers")
            return submit(session, job)

        monkeypatch.setattr(Session, "submit", once)
        _, error = go((BROKE, 2), (DONE, 8))
        assert isinstance(error, DeployedRunError) and "continues=job-1 and" in str(error)

    def test_one_that_refuses_the_first_job_is_a_mistake(self, go, monkeypatch):
        def refuse(session, job):
            raise SessionError("the server refuses")

        monkeypatch.setattr(Session, "submit", refuse)
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

    def test_a_site_that_does_not_come_is_left_to_flare(self, go):
        _, servers = go((DONE, 10), present=["north"])
        assert len(servers) == 1

    def test_a_job_that_trains_nothing_is_done_when_it_has_ended(self, go, tmp_path):
        job = tiny_job.make(tmp_path / "evaluation", SITES, job="evaluation")
        _, servers = go((DONE, 0), job=job)
        assert len(servers) == 1
