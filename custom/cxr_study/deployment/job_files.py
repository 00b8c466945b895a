"""What jobs have left in the kit of a server or site: a list of it, and its removal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psutil

CHECKPOINTS = "checkpoints"
NOTES = "local_notes"

_DAY = 24 * 60 * 60


class JobFilesError(ValueError):
    """The folder is no kit, or a job left nothing in it."""


@dataclass(frozen=True)
class JobFiles:
    """What one job has left.

    Attributes:
        job: Its id.
        paths: Its checkpoints, its local notes and its folder of FLARE's, as far as they are there.
        size: Bytes; a file with several names counts once.
        changed: When the newest of them was written, seconds since 1970.
        running: Whether a process of FLARE's on this machine has the job.
    """

    job: str
    paths: tuple[Path, ...]
    size: int
    changed: float
    running: bool

    @property
    def days(self) -> float:
        """Days since the last change."""
        return (time.time() - self.changed) / _DAY

    def remove(self) -> None:
        """Remove all of it."""
        for path in self.paths:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def job_files(kit: Path, jobs: Sequence[str] = (), older_than: float = 0) -> list[JobFiles]:
    """What jobs have left in a kit, the oldest first.

    The job store of the server is FLARE's own, for its `delete_job`.

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
    for path in [*kit.glob(f"{CHECKPOINTS}/*"), *kit.glob(f"{NOTES}/*.txt"), *kit.iterdir()]:
        if path.parent != kit or _is_job(path.name):
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
    return JobFiles(job, tuple(paths), size, max(changed), running)


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
