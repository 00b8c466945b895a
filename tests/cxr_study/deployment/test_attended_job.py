from io import StringIO

import pytest
from rich.console import Console

from cxr_study.common.progress import Steps
from cxr_study.deployment import attended_job, job_watch
from cxr_study.deployment.deployed_run import DeployedRunError

ERROR = "2026-01-02 03:04:05,000 - ServerRunner - ERROR - the disk is full\n"


class Session:
    """A session with a server where a job says how far it is, one look after the other."""

    def __init__(self, *statuses):
        self.statuses = iter(statuses)
        self.downloads = []

    def meta(self, job_id):
        status = next(self.statuses)
        if not isinstance(status, str):
            raise status
        return {"status": status, "last_schedule_time": 2.0}

    def server_started(self):
        return 1.0

    def stats(self, job_id):
        return {"RunRecord": {"rounds": 3, "best": {"value": 0.25}, "stopped": False}}

    def download(self, job_id, folder):
        self.downloads.append(job_id)
        server = folder / job_id / "workspace"
        server.mkdir(parents=True)
        (server / "error_log.txt").write_text(ERROR)
        return folder / job_id


@pytest.fixture
def attend(tmp_path, monkeypatch):
    """Attends a job; what was said."""
    monkeypatch.setattr(job_watch, "POLL", 0.0)
    monkeypatch.setattr(job_watch, "_QUIET", 0.0)

    def attend(session):
        console = Console(file=StringIO(), width=200)
        attended_job.attend(session, "job", tmp_path, {}, Steps(console))
        return console.file.getvalue()

    return attend


def test_its_rounds_are_told_and_its_end(attend):
    session = Session("RUNNING", "RUNNING", "FINISHED:COMPLETED")
    first, last = attend(session).splitlines()
    assert first == "round 3, best validation BCE 0.2500"
    assert last.startswith("watch     FINISHED:COMPLETED, 3 rounds seen")
    assert session.downloads == []


def test_where_it_fails_the_reason_is_fetched(attend):
    with pytest.raises(DeployedRunError, match=r"job job failed: .*\n.* the disk is full"):
        attend(Session("RUNNING", "FINISHED:EXECUTION_EXCEPTION"))


def test_an_interrupt_leaves_it_to_itself(attend):
    with pytest.raises(KeyboardInterrupt):  # and this session cannot abort
        attend(Session("RUNNING", KeyboardInterrupt()))
