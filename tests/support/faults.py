"""Faults and impostors in the tiny job's configurations, see `tiny_job.make`.

A plan holds items "who:round:what", where in place of a round a task's name may stand, such as
"test". Each strikes once, also in a job that continues another. In a round first what happens to
the site's process strikes, then what becomes of its result.
"""

import errno
import mmap
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.np.np_downloader import ArrayDownloadable

from surgical_aggregation.checkpoints import checkpoint
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.server.access.job_sites import site_of
from surgical_aggregation.server.models import result_files
from surgical_aggregation.server.models.model_files import LAST_FILE, checkpoint_folders
from surgical_aggregation.site.executor import KerasExecutor
from surgical_aggregation.wire.headers import CLASSES

LONGEST = 600.0
"""Longest delay of a site, seconds."""

LATE = 4.0
"""Delay of a site that is "late", seconds."""

ANSWERS = {
    "unsafe": make_reply(ReturnCode.UNSAFE_JOB),
    "unknown": make_reply(ReturnCode.TASK_UNKNOWN),
    "mismatch": make_reply(ReturnCode.RUN_MISMATCH),
    "text": DXO(DataKind.METRICS, data={"bce": "low"}).to_shareable(),
    "pair": DXO(DataKind.METRICS, data={("bce", "Edema"): 0.5}).to_shareable(),
}
"""Answers that would end the job, or are no metric."""

_ROUND = "faults.round"
"""Context property at a site: the round of its task, or the task's name."""

_PRODUCED = ArrayDownloadable.produce_item


def strikes(plan, folder, who, round_, kinds):
    """Which of `kinds` strikes now: planned, and not yet struck, as a mark in the folder says."""
    for kind in kinds:
        item = f"{who}:{round_}:{kind}"
        if item in plan and not strike_file(folder, item).exists():
            strike_file(folder, item).touch()
            return kind
    return None


def strike_file(folder, item):
    """The file that says that a planned fault has struck."""
    return Path(folder) / item.replace(":", "-")


def back(folder, site):
    """The file by which a test says that a site that is "away" is back."""
    return Path(folder) / f"{site}-back"


def accepted(folder, site, round_):
    """The file by which the server says that a site's result was accepted in a round.

    And which of its arrays are in memory, not in a file.
    """
    return Path(folder) / f"accepted-{round_}-{site}"


class Planned:
    """A component whose faults stand in a plan; a folder has the marks of those that struck."""

    def __init__(self, plan, folder, site="server", **settings):
        super().__init__(**settings)
        self.site, self.plan, self.folder = site, plan, folder

    def strikes(self, round_, kinds):
        return strikes(self.plan, self.folder, self.site, round_, kinds)


class FaultyExecutor(Planned, KerasExecutor):
    """The job's executor, which fails when a task is done and the site's state is written.

    What fails is one of `ANSWERS`, or "kill" (of the process), "late" (by `LATE`), "slow" (until
    the round is over without it), "last" (until another's result is accepted), "away" (until the
    test says that the site is back), "behind" (until another is slow or away) or "hold" (until the
    task is aborted). Planned for the "start" is another site's name, until whose first result is
    accepted the site does not train.
    """

    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        if task_name == "train":
            others = [item.rpartition(":")[2] for item in self.plan if ":start:" in item]
            first, end = self.strikes("start", others), time.monotonic() + LONGEST
            while first and not accepted(self.folder, first, 0).exists() and time.monotonic() < end:
                time.sleep(0.1)
        reply = super().execute(task_name, shareable, fl_ctx, abort_signal)
        round_ = shareable.get_header(AppConstants.CURRENT_ROUND)
        round_ = round_ if task_name == "train" else task_name
        fl_ctx.set_prop(_ROUND, round_, private=True, sticky=False)
        kept, end = Path(self.folder), time.monotonic() + LONGEST
        until = {
            "late": lambda: time.monotonic() > end - LONGEST + LATE,
            "slow": lambda: (kept / f"round-{round_ + 1}.npz").exists(),
            "last": lambda: any(kept.glob(f"accepted-{round_}-*")),
            "behind": lambda: any(any(kept.glob(f"*-{round_}-{x}")) for x in ("slow", "away")),
            "away": back(self.folder, self.site).exists,
            "hold": lambda: False,
        }
        what = self.strikes(round_, ("kill", *until, *ANSWERS))
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        over = until.get(what, lambda: True)
        while not (over() or abort_signal.triggered or time.monotonic() > end):
            time.sleep(0.1)
        return ANSWERS.get(what, reply)


class FaultyResult(Planned, Filter):
    """A site's last filter: keeps what it trained, <site>-<round>.npz, and may send `HOSTILE`."""

    def process(self, shareable, fl_ctx):
        round_ = fl_ctx.get_prop(_ROUND)
        if isinstance(round_, int) and shareable.get_return_code() == ReturnCode.OK:
            result = Checkpoint(dict(from_shareable(shareable).data))
            checkpoint.save(result, Path(self.folder) / f"{self.site}-{round_}.npz")
        ArrayDownloadable.produce_item = _PRODUCED
        what = self.strikes(round_, HOSTILE)
        return HOSTILE.get(what, lambda shareable: shareable)(shareable)


def _changed(change):
    def process(shareable):
        dxo = from_shareable(shareable)
        change(dxo.data)
        return dxo.update_shareable(shareable)

    return process


def _filled(value):
    return _changed(lambda data: data.update({_KERNEL: np.full_like(data[_KERNEL], value)}))


def _unlabelled(data):
    first = next(name for name in data if name.startswith("head/")).rpartition("/")[0]
    for part in ("kernel", "bias"):
        data[f"head/Pneumonia/{part}"] = data[f"{first}/{part}"]


def _truncated(data):
    for name in sorted(data)[1:]:
        del data[name]


def _corrupted(shareable):
    corrupted = Shareable()
    corrupted["DXO"] = b"\x00" * 64
    corrupted.set_header("task_name", "train")
    return corrupted


def _torn(shareable):
    """Arrays that the server fetches lack their last bytes."""
    ArrayDownloadable.produce_item = lambda self, index: _PRODUCED(self, index)[:-40]
    return shareable


def _crash(shareable):
    raise OSError("the disk is gone")


_KERNEL = "dense/kernel"
HOSTILE = {
    "crash": _crash,
    "torn": _torn,
    "nan": _filled(np.nan),
    "huge": _filled(3e38),
    "dates": _changed(lambda data: data.update({_KERNEL: data[_KERNEL].astype("M8[s]")})),
    "unlabelled": _changed(_unlabelled),
    "truncated": _changed(_truncated),
    "corrupted": _corrupted,
}
"""What becomes of a result."""


class Impostor(FLComponent):
    """From the start of the run on, a site calls itself by another's name.

    `claims`: site -> whom it passes for, and the classes that it declares.
    """

    def __init__(self, site: str, claims: dict):
        super().__init__()
        self.site, self.claims = site, claims

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.START_RUN and self.site in self.claims:
            victim, classes = self.claims[self.site]
            fl_ctx.get_engine().fl_ctx_mgr.identity_name = victim
            fl_ctx.set_prop(CLASSES, list(classes), private=False, sticky=True)


class FaultyServer(Planned, FLComponent):
    """Keeps every round's global model, as round-<rounds made>.npz; its disk may be full.

    Whose result was accepted in a round, accepted-<round>-<site> says at once. With
    "server:round:full" no checkpoint can be written whole from that round's start on, with
    "server:round:no_room" no result.
    """

    def handle_event(self, event_type, fl_ctx):
        folder, round_ = Path(self.folder), fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        if event_type == AppEventType.ROUND_STARTED:
            if self.strikes(round_, ["full"]):
                checkpoint._write = _half
            if self.strikes(round_, ["no_room"]):
                result_files.tempfile.TemporaryFile = lambda **_: Path("/dev/full").open("wb+")
        if event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                sent = from_shareable(fl_ctx.get_prop(AppConstants.TRAINING_RESULT)).data
                held = " ".join(sorted(name for name in sent if not _in_a_file(sent[name])))
                accepted(folder, site_of(fl_ctx), round_).write_text(held)
        if event_type == AppEventType.ROUND_DONE:
            last = checkpoint_folders(fl_ctx)[0] / LAST_FILE
            shutil.copy(last, folder / f"round-{round_ + 1}.npz")


def _in_a_file(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


def _half(file, manifest, variables):
    file.write(manifest.encode())
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
