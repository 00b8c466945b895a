import os
import subprocess
import sys
import textwrap
import time
from unittest.mock import Mock

import psutil
import pytest

from cxr_deployment import processes
from cxr_deployment.processes import PortError, check_free, connection_error

SLEEP = "import time; time.sleep(60)"
WATCHDOG = """#!/usr/bin/env bash
while true; do
  {python} -c '{sleep}' nvflare.private.fed.app.client.worker_process -m {kit}/ &
  wait $!
done
"""


@pytest.fixture
def kit(tmp_path):
    """A startup kit whose watchdog starts a job's process again whenever it ends."""
    kit = tmp_path / "system" / "site"
    (kit / "startup").mkdir(parents=True)
    watchdog = kit / "startup" / "sub_start.sh"
    watchdog.write_text(WATCHDOG.format(python=sys.executable, sleep=SLEEP, kit=kit))
    watchdog.chmod(0o755)
    (kit / "startup" / "start.sh").write_text(f"echo started\n{watchdog} &\n")
    yield kit
    processes.terminate(tmp_path)


def wait_for(count, folder):
    deadline = time.monotonic() + 60
    while len(found := processes.find_processes(folder)) != count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) == count
    return found


def test_a_service_outlives_the_session_that_started_it_and_is_known_by_its_folder(kit, tmp_path):
    left = [kit / name for name in ("pid.fl", "daemon_pid.fl", "shutdown.fl", "log.txt")]
    for file in left:
        file.touch()
    processes.start(kit, os.environ)
    watchdog, job = wait_for(2, tmp_path)
    assert os.getsid(0) not in (os.getsid(watchdog.pid), os.getsid(job.pid))
    assert (kit / processes.CONSOLE).read_text() == "started\n"
    # What would have kept it from starting is removed.
    assert [file.name for file in left if file.exists()] == ["log.txt"]
    assert "sub_start.sh" in " ".join(watchdog.cmdline()) and job.ppid() == watchdog.pid
    while "nvflare" not in " ".join((job := processes.find_processes(tmp_path)[1]).cmdline()):
        pass  # a fork that is not yet what it will be
    assert processes.any_runs([watchdog, job], *processes.JOB)
    assert not processes.any_runs([watchdog], *processes.JOB)
    assert not processes.any_runs([watchdog, job], *processes.SERVER)
    assert processes.find_processes(tmp_path / "sys") == []  # another folder
    looks = [sys.executable, "-c", SLEEP, f"{tmp_path}/log.txt", "surgagg", str(tmp_path)]
    with subprocess.Popen(looks) as process:  # at a file of it
        wait_for(2, tmp_path)
        process.kill()
    found = wait_for(2, tmp_path)
    processes.terminate(tmp_path)  # and nothing is started again
    assert processes.find_processes(tmp_path) == []
    assert not any(map(psutil.Process.is_running, found))


LAST_WORDS = f"""
import signal, subprocess, sys
def leave(*_):
    subprocess.Popen([sys.executable, "-c", {SLEEP!r}, *sys.argv[1:]])
    sys.exit()
signal.signal(signal.SIGTERM, leave)
{SLEEP}
"""
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"


@pytest.mark.parametrize("program", [STUBBORN, LAST_WORDS], ids=["stubborn", "last words"])
def test_neither_one_that_will_not_end_nor_one_that_starts_another_is_left(tmp_path, program):
    processes.terminate(tmp_path)  # where nothing runs nothing happens
    command = [sys.executable, "-c", textwrap.dedent(program), "nvflare.x", f"{tmp_path}/site"]
    with subprocess.Popen(command):
        wait_for(1, tmp_path)
        time.sleep(0.5)  # until it listens to signals
        processes.terminate(tmp_path, patience=0.3)
        assert processes.find_processes(tmp_path) == []


def test_who_has_a_port_is_named_as_far_as_this_user_may_know(taken, monkeypatch):
    assert connection_error("localhost", taken) is None
    refused = "no server listens at localhost:1: Connection refused"
    assert connection_error("localhost", 1) == refused
    assert "name" in connection_error("no.such.host.invalid", 1).lower()
    with pytest.raises(PortError, match=rf"port {taken}; process {os.getpid()} \(.*python"):
        check_free(taken)
    denied = Mock(side_effect=psutil.AccessDenied)
    monkeypatch.setattr(psutil, "net_connections", denied)
    with pytest.raises(PortError, match=f"needs port {taken}; another process has it"):
        check_free(taken)
    forbidden = Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr(processes.socket.socket, "bind", forbidden)
    with pytest.raises(PortError, match="needs port 80, which this user may not listen on"):
        check_free(80)


def test_a_process_of_another_account_is_named(monkeypatch, tmp_path):
    process = psutil.Process()
    monkeypatch.setattr(processes, "find_processes", lambda folder: [process])
    monkeypatch.setattr(psutil.Process, "terminate", Mock(side_effect=psutil.AccessDenied))
    wanted = f"process {process.pid} of {tmp_path} belongs to another account"
    with pytest.raises(PermissionError, match=wanted):
        processes.terminate(tmp_path)
