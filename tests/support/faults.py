"""Faults, placed into the tiny job's configurations; each strikes once, also in a continued job."""

import errno
import os
import shutil
import signal
import time
from pathlib import Path

from nvflare.apis.dxo import from_shareable
from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import ReturnCode
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.checkpoints import checkpoint
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.server.access.site_identity import site_of
from surgical_aggregation.server.models.model_files import LAST_FILE, checkpoint_folders
from surgical_aggregation.site.executor import KerasExecutor

LONGEST = 120.0
"""Seconds that a site is held up at most."""

KINDS = ("kill", "slow", "last", "away", "hold")
"""What can go wrong in an executor, in the order in which a round's faults strike."""

ROUND = "faults.round"
"""Context property at a site: the round of its task."""


def strikes(plan, folder, site, round_, kinds):
    """Which of `kinds` strikes now: planned as "site:round:kind", and not yet struck."""
    for kind in kinds:
        item = f"{site}:{round_}:{kind}"
        mark = Path(folder) / item.replace(":", "-")
        if item in plan and not mark.exists():
            mark.touch()
            return kind
    return None


def back(folder, site):
    """The file by which a test says that a site that is "away" is back."""
    return Path(folder) / f"{site}-back"


class FaultyExecutor(KerasExecutor):
    """The job's executor, which fails when a task is done and the site's state is written.

    Args:
        site: The site it runs at.
        plan: "site:round:what" items; what is "kill" (of the process), "slow" (until the
            round is over without it), "last" (until another's result is accepted), "away" (until
            the test says that the site is back) or "hold" (until the task is aborted). In place of
            a round a task's name, such as "test".
        folder: Where marks of what has struck are kept.
        settings: The job's own.
    """

    def __init__(self, site, plan, folder, **settings):
        super().__init__(**settings)
        self.site = site
        self.plan = plan
        self.folder = folder

    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        reply = super().execute(task_name, shareable, fl_ctx, abort_signal)
        train = task_name == "train"
        round_ = shareable.get_header(AppConstants.CURRENT_ROUND) if train else task_name
        fl_ctx.set_prop(ROUND, round_, private=True, sticky=False)
        what = strikes(self.plan, self.folder, self.site, round_, KINDS)
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "slow":
            closed = Path(self.folder) / f"round-{round_ + 1}.npz"
            _wait(lambda: abort_signal.triggered or closed.exists())
        if what == "last":
            accepted = Path(self.folder)
            _wait(lambda: abort_signal.triggered or any(accepted.glob(f"accepted-{round_}-*")))
        if what == "away":
            back_again = back(self.folder, self.site)
            _wait(lambda: abort_signal.triggered or back_again.exists())
        if what == "hold":
            _wait(lambda: abort_signal.triggered)
        return reply


def _wait(until):
    end = time.monotonic() + LONGEST
    while not until() and time.monotonic() < end:
        time.sleep(0.1)


class KeepResults(Filter):
    """A site's last filter but one, which keeps what the site trained, as <site>-<round>.npz.

    Args:
        site: The site it runs at.
        folder: Where.
    """

    def __init__(self, site: str, folder: str):
        super().__init__()
        self.site = site
        self.folder = folder

    def process(self, shareable, fl_ctx):
        round_ = fl_ctx.get_prop(ROUND)
        if isinstance(round_, int) and shareable.get_return_code() == ReturnCode.OK:
            result = Checkpoint(dict(from_shareable(shareable).data))
            checkpoint.save(result, Path(self.folder) / f"{self.site}-{round_}.npz")
        return shareable


class KeepRounds(FLComponent):
    """Keeps the global model after every round, as round-<number of rounds made>.npz.

    Whose result it took in a round, accepted-<round>-<site> says as soon as it did.

    Args:
        folder: Where.
    """

    def __init__(self, folder: str):
        super().__init__()
        self.folder = folder

    def handle_event(self, event_type, fl_ctx):
        if event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
                Path(self.folder, f"accepted-{round_}-{site_of(fl_ctx)}").touch()
        if event_type == AppEventType.ROUND_DONE:
            made = fl_ctx.get_prop(AppConstants.CURRENT_ROUND) + 1
            last = checkpoint_folders(fl_ctx)[0] / LAST_FILE
            shutil.copy(last, Path(self.folder) / f"round-{made}.npz")


class FullDisk(FLComponent):
    """A server's disk that is full: no checkpoint can be written whole.

    Args:
        plan: "server:round:full" items: from that round's start on.
        folder: Where marks of what has struck are kept.
    """

    def __init__(self, plan: list, folder: str):
        super().__init__()
        self.plan = plan
        self.folder = folder

    def handle_event(self, event_type, fl_ctx):
        if event_type == AppEventType.ROUND_STARTED:
            round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
            if strikes(self.plan, self.folder, "server", round_, ["full"]):
                checkpoint._write = _half


def _half(file, manifest, variables):
    file.write(manifest.encode())
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
