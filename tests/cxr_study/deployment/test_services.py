import os
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from cxr_study.deployment import services

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
    services.end(tmp_path)


def wait_for(count, folder):
    deadline = time.monotonic() + 10
    while len(found := services.processes(folder)) != count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) == count
    return found


class TestStart:
    def test_a_service_outlives_the_session_that_started_it(self, kit, tmp_path):
        services.start(kit, os.environ)
        for process in wait_for(2, tmp_path):
            assert os.getsid(process.pid) != os.getsid(0)
        assert (kit / services.CONSOLE).read_text() == "started\n"


class TestProcesses:
    def test_the_watchdog_comes_first(self, kit, tmp_path):
        services.start(kit, os.environ)
        first, second = wait_for(2, tmp_path)
        assert "sub_start.sh" in " ".join(first.cmdline()) and second.ppid() == first.pid

    def test_a_program_that_looks_at_a_file_of_it_is_none(self, tmp_path):
        command = [sys.executable, "-c", SLEEP, f"{tmp_path}/log.txt", "surgagg", str(tmp_path)]
        with subprocess.Popen(command) as process:
            try:
                assert services.processes(tmp_path) == []
            finally:
                process.kill()

    def test_a_folder_beside_it_with_a_longer_name_is_another(self, kit, tmp_path):
        services.start(kit, os.environ)
        wait_for(2, tmp_path)
        assert services.processes(tmp_path / "sys") == []

    def test_a_jobs_process_is_known(self, kit, tmp_path):
        services.start(kit, os.environ)
        watchdog, _ = wait_for(2, tmp_path)
        while "nvflare" not in " ".join((job := services.processes(tmp_path)[1]).cmdline()):
            pass  # a fork that is not yet what it will be
        assert services.runs([watchdog, job], *services.JOB)
        assert not services.runs([watchdog], *services.JOB)
        assert not services.runs([watchdog, job], *services.SERVER)


class TestEnd:
    def test_nothing_is_started_again(self, kit, tmp_path):
        services.start(kit, os.environ)
        found = wait_for(2, tmp_path)
        services.end(tmp_path)
        assert services.processes(tmp_path) == []
        assert not any(map(psutil.Process.is_running, found))

    def test_a_process_that_will_not_end_is_killed(self, tmp_path):
        stubborn = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
        command = [sys.executable, "-c", stubborn, "nvflare.x", f"{tmp_path}/site"]
        with subprocess.Popen(command):
            wait_for(1, tmp_path)
            time.sleep(0.5)  # until it ignores
            services.end(tmp_path, patience=0.3)
            assert services.processes(tmp_path) == []

    def test_a_process_that_starts_another_at_its_end_is_no_way_out(self, tmp_path):
        service = ["nvflare.x", f"{tmp_path}/site"]
        last_words = textwrap.dedent(f"""
            import signal, subprocess, sys
            def leave(*_):
                subprocess.Popen([sys.executable, "-c", {SLEEP!r}, *sys.argv[1:]])
                sys.exit()
            signal.signal(signal.SIGTERM, leave)
            {SLEEP}
        """)
        with subprocess.Popen([sys.executable, "-c", last_words, *service]):
            wait_for(1, tmp_path)
            time.sleep(0.5)  # until it listens
            services.end(tmp_path)
        assert services.processes(tmp_path) == []

    def test_where_nothing_runs_nothing_happens(self, tmp_path):
        services.end(tmp_path)


def test_what_would_keep_a_service_from_starting_is_forgotten(tmp_path):
    for name in ("pid.fl", "daemon_pid.fl", "shutdown.fl", "log.txt"):
        (tmp_path / name).touch()
    services.forget(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]
