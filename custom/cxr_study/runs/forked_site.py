"""A site's process in FLARE's simulator, forked from one that has imported what all sites need.

To import TensorFlow takes a site longer than several rounds of a small network.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.simulator import simulator_worker

from cxr_study.jobs import job_folder

multiprocessing.set_forkserver_preload(["cxr_study.runs.site_imports"])


def suits(job: Path) -> bool:
    """Whether the sites of a job are this application's, by the installed code."""
    brings_code = any(job.glob("app*/custom/**/*.py"))
    return sys.platform == "linux" and not brings_code and not job_folder.has_own_site(job)


class ForkedSite(ForkServerProcess):
    """As much of a `subprocess.Popen` as FLARE's simulator uses.

    Args:
        command: FLARE's of a site's process.
        env: Variables of that process.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], **_: object):
        words = command[command.index(simulator_worker.__name__) :]
        super().__init__(target=_work, args=(words, dict(env)))
        self.start()

    @property
    def returncode(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.exitcode

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.exitcode

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end; raises `TimeoutExpired`."""
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired(self.name, timeout or 0)


def _work(words: list[str], environment: dict[str, str]) -> None:
    """Do what `simulator_worker` does as a program."""
    os.setsid()
    os.environ.update(environment)
    sys.argv = words
    args = simulator_worker.parse_arguments()
    MainProcessMonitor.run(main_func=simulator_worker.main, run_dir=args.workspace, args=args)
