"""What jobs have left in the kit of a server or site, and in its job store; and its removal."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import BadZipFile, ZipFile

import psutil

from cxr_study.deployment import at_hand
from cxr_study.jobs import folder
from cxr_study.jobs.presets import JobError

CHECKPOINTS = "checkpoints"
NOTES = "local_notes"

META, DATA = "meta", "data"
"""In FLARE's job store, of each job: what FLARE knows of it, and its zipped job folder."""

_DAY = 24 * 60 * 60
_LIVE = _DAY / 24
"""Seconds in which a job that runs writes to one of its files."""


class JobFilesError(ValueError):
    """The folder is no kit, or a job left nothing in it."""


@dataclass(frozen=True)
class JobFiles:
    """What one job has left.

    Attributes:
        job: Its id.
        paths: Its checkpoints, its local notes and its folders of FLARE's, as far as they are
            there.
        size: Bytes; a file with several names counts once.
        changed: When the newest of them was written, seconds since 1970.
        running: Whether a process of FLARE's on this machine has the job.
        meta: What FLARE knows of it, where the server's job store is at hand.
        continues: Ids of the jobs that it continues, likewise.
    """

    job: str
    paths: tuple[Path, ...]
    size: int
    changed: float
    running: bool
    meta: Mapping[str, Any]
    continues: str

    @property
    def needed(self) -> str:
        """Why it cannot be removed; empty where it can.

        FLARE itself keeps a job for ever that ran when the server was killed.
        """
        status = self.meta.get("status", "")
        live = status in ("RUNNING", "DISPATCHED") and time.time() < self.changed + _LIVE
        return "running" if self.running or live else "waiting" * (status == "SUBMITTED")

    @property
    def days(self) -> float:
        """Days since the last change."""
        return (time.time() - self.changed) / _DAY

    def remove(self) -> None:
        """Remove all of it."""
        for path in self.paths:
            if path.is_dir():
                (path / META).unlink(missing_ok=True)  # without it the job store has no such job
                shutil.rmtree(path)
            else:
                path.unlink()


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
    running = _words_of_flare()
    found = [_of(job, paths, job in running) for job, paths in left.items()]
    return sorted(
        (one for one in found if one.days >= older_than and (not jobs or one.job in jobs)),
        key=lambda one: one.changed,
    )


def _of(job: str, paths: Sequence[Path], running: bool) -> JobFiles:
    files = [path for top in paths for path in [top, *top.rglob("*")] if path.is_file()]
    facts = {facts.st_ino: facts for facts in (path.stat() for path in files)}
    changed = [facts.st_mtime for facts in facts.values()] or [paths[0].stat().st_mtime]
    size = sum(facts.st_size for facts in facts.values())
    meta, continues = _known(next((top for top in paths if (top / META).is_file()), None))
    return JobFiles(job, tuple(paths), size, max(changed), running, meta, continues)


def _known(stored: Path | None) -> tuple[dict[str, Any], str]:
    """What FLARE knows of a job, and what it continues, by its folder in the job store."""
    if stored is None:
        return {}, ""
    continues = ""
    with suppress(OSError, BadZipFile, JobError), ZipFile(stored / DATA) as job:
        for name in job.namelist():
            if "config_fed_server." in name:
                config = folder.parse(name, job.read(name).decode(errors="replace"))
                continues = str(config.get("continues", ""))
    return json.loads((stored / META).read_text(encoding="utf-8")), continues


def _is_job(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _words_of_flare() -> set[str]:
    """Words of the commands of FLARE's processes on this machine; a job's has the job's id."""
    words: set[str] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = process.cmdline()
            if any(word.startswith("nvflare.") for word in command):
                words.update(command)
    return words
