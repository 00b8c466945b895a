"""Jobs that end well are in tests/simulator; here are those that do not."""

import sys
import textwrap
import time
from contextlib import nullcontext
from pathlib import Path

import psutil
import pytest

from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.runs import simulator_process
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.job_results import read_events
from cxr_study.runs.simulator_process import LostSiteError, SimulationError, simulate
from simulated import processes
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.site.local_notes import CANNOT_PARTICIPATE

SITES = {name: {"classes": ["Edema"], "images": 16} for name in ("north", "south")}


PREAMBLE = f"""
import json, os, subprocess, sys, time
from pathlib import Path
workspace = Path(sys.argv[sys.argv.index("-w") + 1])
def record(event, **facts):
    path = workspace / "{server_folder(Path()) / RECORD_FILE}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({{"event": event, **facts}}) + "\\n")
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a program in the simulator's place; `record` writes a line of the run's record."""

    def run(program, **arguments):
        script, python = tmp_path / "simulator.py", tmp_path / "python"
        script.write_text(PREAMBLE + textwrap.dedent(program))
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(simulator_process.sys, "executable", str(python))
        job = tmp_path / "job"
        asked = Job.of("surgical").with_settings({"num_rounds": 2}, sites=list(SITES))
        job_export.write(asked, job)
        simulate(job, tmp_path / "runs/workspace", **arguments)

    return run


GOOD = 'for number in range(2): record("round", round=number)\n'
SLEEP = "time.sleep(600)\n"
CHILD = """
child = subprocess.Popen([sys.executable, "-c", code, "simulator_worker", "--client", "south"])
record("started", worker=child.pid)
"""
WORKER = 'code = "import time; time.sleep(60)"' + CHILD + "child.wait()\n"
FORKING = 'code = "import os, time; time.sleep(60 if os.fork() else 1.5)"' + CHILD
LOST = """
record("started")
(workspace / "server/error_log.txt").write_text("SimulatorClientRunner - ERROR - {}")
"""

NOTES = """
notes = workspace / "south/local_notes/simulate_job.txt"
notes.parent.mkdir(parents=True)
"""
ENDS = {
    "on record": (
        GOOD + 'record("failed", reason="no body"); record("failed", reason="so what")\n',
        "no body"),
    "a site's own words": (
        NOTES + f"facts = dict(what={CANNOT_PARTICIPATE!r}, kind='SiteError')\n"
        "facts['reason'] = 'no csv, first:\\na.png'\nnotes.write_text(json.dumps(facts))\n"
        'record("failed", reason="an error")\n',
        r"south: no csv, first:\na\.png\nThe log of south is .*\n"
        "The server ended the run: an error"),
    "too few rounds": (
        'record("round", round=0)\n'
        'print("10:00 - INFO - fine\\n10:01 - ERROR - out of memory\\n10:02 - INFO - bye")\n',
        "10:00 - INFO - fine\n10:01 - ERROR - out of memory\n10:02 - INFO - bye"),
    "stopped in a round that did not end": ('record("stopped", round=0)\n', "it printed nothing"),
    "a crash": (GOOD + "sys.exit('kaboom')\n", "kaboom"), "silence": ("", "it printed nothing"),
    "went on without a site": (
        GOOD + NOTES + """notes.write_text('{"what": "train", "kind": "x", "reason": "no"}')\n""",
        None),
    "stopped early": ('record("stopped", round=0); record("round", round=0)\n', None),
    "a site forks, and the other process ends": (FORKING + "time.sleep(3)\n" + GOOD, None),
}  # fmt: skip
"""What happens -> the program that does it, and the reason of a failure, a pattern."""


@pytest.mark.parametrize(("program", "reason"), ENDS.values(), ids=ENDS)
def test_a_failure_has_its_reason_and_its_log(run, tmp_path, program, reason):
    message = rf"^the job failed: {reason}\nThe log is {tmp_path / 'runs/workspace-simulator.log'}$"
    with pytest.raises(SimulationError, match=message) if reason else nullcontext():
        run(program)


def test_flare_gets_the_job_and_a_thread_for_every_site_and_the_watcher_every_event(run, tmp_path):
    told = 'print(*sys.argv[1:], os.environ["CXR_SITES"], os.environ["SURGAGG_SITE_STATES"])\n'
    how = {"environment": {"CXR_SITES": "/my/sites"}, "states": {"south": Path("/earlier")}}
    seen = []
    run(GOOD + told, watch=seen.append, **how)
    assert (tmp_path / "runs/workspace-simulator.log").read_text() == (
        f"-m cxr_study.runs.patched_simulator {tmp_path}/job "
        f"-w {tmp_path}/runs/workspace -c north,south -t 2 /my/sites "
        '{"south": "/earlier"}\n'
    )
    assert [event["round"] for event in seen[-1]] == [0, 1]


@pytest.mark.parametrize(("program", "error", "message"), [
    ('record("failed", reason="no body")\n', SimulationError, "no body"),
    (LOST.format("Communication error with client south: reset"), LostSiteError,
     "the process of south is gone"),
    (LOST.format("run_client_thread error: ConnectionResetError: reset"), LostSiteError,
     "the process of a site is gone"),
    (WORKER, LostSiteError, "the process of south is gone"),
    (WORKER + GOOD + 'record("gone")\ntime.sleep(5)\nsys.exit()\n', None, ""),  # all is done
    (WORKER + GOOD + 'record("gone")\n', LostSiteError, "the process of south is gone"),
    (WORKER + GOOD + 'record("ended"); record("gone")\ntime.sleep(10)\nsys.exit()\n', None, ""),
])  # fmt: skip
def test_what_is_gone_is_not_waited_for(run, tmp_path, monkeypatch, program, error, message):
    monkeypatch.setattr(simulator_process, "ENDING", 60.0 if "sleep(5)" in program else 8.0)
    began, seen = time.monotonic(), []
    server = server_folder(tmp_path / "runs/workspace")

    def kill(events):
        """End the site's process once it must have been seen."""
        seen.extend(event["worker"] for event in events if "worker" in event)
        if len(seen) == 2:
            psutil.Process(seen[0]).kill()
            while error is None and read_events(server)[-1]["event"] != "gone":
                time.sleep(0.1)

    with pytest.raises(error, match=message) if error else nullcontext():
        run(program + SLEEP, watch=kill)
    assert time.monotonic() - began < 300


DEAF = """
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
child = subprocess.Popen(
    [sys.executable, "-c", deaf, str(workspace)], start_new_session=True, stdout=subprocess.PIPE
)
child.stdout.readline()
record("started")
"""


def test_workers_that_lead_groups_of_their_own_and_ignore_signals_are_ended(run, tmp_path):
    def watch(events):
        if events:
            assert len(processes(tmp_path / "runs")) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(DEAF + SLEEP, watch=watch)
    assert processes(tmp_path / "runs") == []
