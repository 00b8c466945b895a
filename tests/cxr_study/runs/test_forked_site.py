"""That runs go through forked sites, and end as others do, is in tests/simulator."""

import os
import subprocess
import sys
import time
from multiprocessing import forkserver

import psutil
import pytest

from cxr_study.jobs import job_folder
from cxr_study.runs import forked_site
from tiny_job import JOBS, make

SITES = {name: {"classes": ["Edema"], "images": 16} for name in ("north", "south")}


def test_sites_of_this_application_are_forked_unless_the_job_brings_code(tmp_path, monkeypatch):
    job = tmp_path / "ours"
    job_folder.copy(JOBS / "surgical", job, sites=list(SITES), settings={})
    assert forked_site.suits(job)
    assert not forked_site.suits(make(tmp_path / "theirs", SITES))
    (job / "app_client/custom/own").mkdir(parents=True, exist_ok=True)
    assert forked_site.suits(job)
    code = job / "app_client/custom/own/network.py"
    code.touch()
    assert not forked_site.suits(job)
    code.unlink()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not forked_site.suits(job)


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a site's process as FLARE does, but with nothing imported before."""
    monkeypatch.setattr(forkserver._forkserver, "_preload_modules", [])
    started = []

    def start(*words):
        command = [sys.executable, "-m", forked_site.simulator_worker.__name__, *words]
        site = forked_site.ForkedSite(
            command, shell=False, preexec_fn=os.setsid, env={**os.environ, "OF_SITE": "north"}
        )
        started.append(site)
        return site

    yield start
    for site in started:
        site.kill()
        site.join()


def test_its_end_is_told_as_of_a_popen(start):
    site = start("--no-such-option")
    site.wait(timeout=60)
    assert site.poll() == site.returncode == 2


def test_it_is_flares_program_in_a_session_of_its_own_with_the_variables_given(start, tmp_path):
    log = tmp_path / "local/log_config.json"
    log.parent.mkdir()
    log.write_text('{"version": 1}')
    site = start(
        "-o", str(tmp_path), "--logging_config", str(log), "--client", "north", "--token", "-",
        "--port", "0", "--parent_pid", str(os.getpid()), "--decomposer_module", "os",
    )  # fmt: skip
    process = psutil.Process(site.pid)
    while process.cwd() != str(tmp_path):  # where FLARE's program goes first
        time.sleep(0.05)
    assert os.getsid(site.pid) == site.pid
    with pytest.raises(subprocess.TimeoutExpired):
        site.wait(timeout=0.1)
    assert site.poll() is None
    site.kill()
    site.wait()
    assert site.returncode == -9
