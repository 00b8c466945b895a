"""What jobs have left in the kit of a server or site, and in its job store; and its removal."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import BadZipFile, ZipFile

import psutil

from cxr_study.deployment import at_hand
from cxr_study.deployment.processes import flares_words
from cxr_study.jobs import folder
from cxr_study.jobs.presets import JobError

CHECKPOINTS = "checkpoints"
NOTES = "local_notes"

META, DATA = "meta", "data"
"""In FLARE's job store, of each job: what FLARE knows of it, and its zipped job folder."""

_DAY = 24 * 60 * 60
_LIVE = 1 / 24
"""Days in which a job that runs writes to one of its files."""


class JobFilesError(ValueError):
    """The folder is no kit, or a job left nothing in it."""


@dataclass(frozen=True)
class JobFiles:
    """What one job has left.

    Attributes:
        job: Its id.
        paths: Its checkpoints, its local notes and its folders of FLARE's, as far as they are
            there.
        running: Whether a process of FLARE's on this machine has the job.
    """

    job: str
    paths: tuple[Path, ...]
    running: bool

    @cached_property
    def _files(self) -> list[os.stat_result]:
        """Of each file once, whatever names it has."""
        files = [path for top in self.paths for path in [top, *top.rglob("*")] if path.is_file()]
        return list({facts.st_ino: facts for facts in (path.stat() for path in files)}.values())

    @property
    def size(self) -> int:
        """Bytes; a file with several names counts once."""
        return sum(facts.st_size for facts in self._files)

    @property
    def days(self) -> float:
        """Days since the newest of them was written."""
        changed = max([facts.st_mtime for facts in self._files or [self.paths[0].stat()]])
        return (time.time() - changed) / _DAY

    @property
    def _stored(self) -> Path | None:
        """Its folder in the job store, where that is at hand."""
        return next((top for top in self.paths if (top / META).is_file()), None)

    @property
    def meta(self) -> Mapping[str, Any]:
        """What FLARE knows of it, where the server's job store is at hand."""
        stored = self._stored
        return json.loads((stored / META).read_text(encoding="utf-8")) if stored else {}

    @property
    def continues(self) -> str:
        """Ids of the jobs that it continues, likewise."""
        if (stored := self._stored) is None:
            return ""
        with suppress(OSError, BadZipFile, JobError), ZipFile(stored / DATA) as job:
            for name in job.namelist():
                if "config_fed_server." in name:
                    config = folder.parse(name, job.read(name).decode(errors="replace"))
                    return str(config.get("continues", ""))
        return ""

    @property
    def needed(self) -> str:
        """Why it cannot be removed; empty where it can.

        FLARE itself keeps a job for ever that ran when the server was killed.
        """
        status = self.meta.get("status", "")
        live = status in ("RUNNING", "DISPATCHED") and self.days < _LIVE
        return "running" if self.running or live else "waiting" * (status == "SUBMITTED")

    def remove(self) -> None:
        """Remove all of it."""
        for path in self.paths:
            with suppress(OSError):  # without it the job store has no such job
                (path / META).unlink()
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def job_files(kit: Path, jobs: Sequence[str] = (), older_than: float = 0) -> list[JobFiles]:
    """What jobs have left in a kit, the oldest first, and of a server's in its job store.

    The store is a folder that FLARE reads anew each time. So what is taken out of it is gone, also
    of a job that FLARE's `delete_job` refuses for ever, and no admin's kit is needed.

    Args:
        kit: Folder of a server's or site's startup kit.
        jobs: Of these alone. Default: of all.
        older_than: Days without a change. Default 0.

    Raises:
        JobFilesError: It is no kit, or one of the jobs left nothing there.
    """
    if not (kit / "startup").is_dir():
        raise JobFilesError(f"the folder of a startup kit is needed, with startup/; got {kit}.")
    left: dict[str, list[Path]] = {}
    store = at_hand.job_store(kit)
    archived = list(store.iterdir()) if store is not None and store.is_dir() else []
    own = [*kit.glob(f"{CHECKPOINTS}/*"), *kit.glob(f"{NOTES}/*.txt")]
    for path in [*own, *kit.iterdir(), *archived]:
        if path in own or _is_job(path.name):
            left.setdefault(path.stem, []).append(path)
    if unknown := [job for job in jobs if job not in left]:
        raise JobFilesError(f"job {', '.join(unknown)} left nothing in {kit}.")
    words = [command for process in psutil.process_iter() if (command := flares_words(process))]
    running = {word for command in words for word in command}
    found = [JobFiles(job, tuple(left[job]), job in running) for job in jobs or left]
    return sorted((one for one in found if one.days >= older_than), key=lambda one: -one.days)


def _is_job(name: str) -> bool:
    with suppress(ValueError):
        return str(UUID(name)) == name
    return False
