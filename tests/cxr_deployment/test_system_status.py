import json
import re
from datetime import datetime
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

from cxr_deployment import local_workspaces, system_status
from cxr_deployment.flare_session import SessionError
from cxr_deployment.poc_system import PocSystem
from deployed import PROJECT

NOW = datetime.now().timestamp()
JOB = {"name": "surgical", "deploy_map": {"app": ["nih", "chexpert", "server"]}}
DECLARED = {
    "event": "declared", "site": "chexpert", "date": "2026-11-02", "versions": {"surgagg": "0.1"},
    "free_disk": 2**30, "certificate_days": 12, "reason": "no labels",
}  # fmt: skip


def session(kit=None, flare=None, *jobs):
    """A session with a server of a minute; `flare`: FLARE's versions, None: no right to them."""

    def versions():
        if flare is None:
            raise SessionError("no right")
        return flare

    return SimpleNamespace(
        kit=kit, versions=versions, jobs=lambda: jobs, sites=lambda: {"nih"},
        server_started=lambda: NOW - 60, last_seen=lambda: {"nih": datetime.now().timestamp() - 5},
    )  # fmt: skip


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """A prepared POC; the server has been started, and its job store has a record of chexpert's."""
    system = PocSystem(tmp_path_factory.mktemp("poc") / "poc")
    system.prepare(PROJECT)
    (system.server / "log.txt").touch()
    for job, date in {"new": "2026-11-02", "old": "2026-11-01"}.items():
        stored = local_workspaces.job_store(system.server) / job
        stored.mkdir(parents=True)
        with ZipFile(stored / "workspace", "w") as files:
            line = {**DECLARED, "date": date, "free_disk": None}
            files.writestr("run_record.jsonl", json.dumps(DECLARED if job == "new" else line))
    return system


@pytest.mark.parametrize("versions", [{"server": "2.9.0", "nih": "2.9.0"}, None])
def test_every_party_has_a_line(system, versions):
    asked = session(system.lead, versions, {**JOB, "job_id": "1", "status": "RUNNING"})
    places = local_workspaces.workspaces(system.lead)
    kit, server, chexpert, nih, _ = system_status.status_lines(asked, places)
    assert re.match(r"lead@.*: certificate until 20\d\d-\d\d-\d\d, \d+ days; [\d,]+ MB free", kit)
    flare = "; FLARE 2.9.0" * (versions is not None)
    assert re.match(rf"server: up since [-\d]+ [\d:]+{flare}; [\d,]+ MB free$", server)
    assert re.match(rf"nih: connected, last seen \d+ s ago{flare}$", nih)
    assert chexpert == (
        "chexpert: not connected; answer of 2026-11-02: cannot participate: no labels (surgagg "
        "0.1, 1.1 GB free, certificate for 12 days)"
    )
    *_, elsewhere, _, _ = system_status.status_lines(asked, {})
    assert elsewhere == "chexpert: not connected"


def test_what_others_write_has_no_terminal_escapes(system):
    named = {**JOB, "name": "\x1b[2K", "job_id": "1", "status": "RUNNING"}
    asked = session(system.lead, {"server": "2.9.0", "nih": "\n\x1b[2K"}, named)
    assert all(map(str.isprintable, system_status.status_lines(asked, {})))


@pytest.mark.parametrize(("facts", "reason"), [
    ({"status": "FINISHED:COMPLETED"}, "$"),
    ({"status": "RUNNING", "last_schedule_time": NOW - 30}, "$"),
    ({"status": "RUNNING", "last_schedule_time": NOW - 90}, ": the server was restarted"),
    ({"status": "SUBMITTED"}, ": FLARE has not tried to start it: .*; not connected: chexpert"),
    ({"status": "FINISHED:CANT_SCHEDULE", "job_deploy_detail": ["nih: OK", "no"]}, ": no$"),
])  # fmt: skip
def test_a_jobs_state_has_a_reason_where_it_needs_one(system, facts, reason):
    asked = session(system.lead, None, {**JOB, "job_id": "1", **facts})
    *_, line = system_status.status_lines(asked, {})
    assert re.search(f"^1  surgical  {facts['status']}{reason}", line)
