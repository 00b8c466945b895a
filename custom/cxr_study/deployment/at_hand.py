"""What of a system is on this machine: workspaces, their disks, and what jobs have left there."""

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

from cxr_study.deployment.processes import flares_words
from cxr_study.jobs import folder
from cxr_study.jobs.presets import JobError
from cxr_study.runs.finished_run import SERVER

Workspaces = Mapping[str, Path]
"""Party ("server" or a site) -> its FLARE workspace."""

ROOM = 200 * 2**20
"""Bytes that a disk must have for a job: its checkpoints, results and archive with DenseNet121."""

_SERVICES = ("fed_server.json", "fed_client.json")

CHECKPOINTS = "checkpoints"
NOTES = "local_notes"

META, DATA = "meta", "data"
"""In FLARE's job store, of each job: what FLARE knows of it, and its zipped job folder."""

_DAY = 24 * 60 * 60
_LIVE = 1 / 24
"""Days in which a job that runs writes to one of its files."""


class RoomError(ValueError):
    """A disk has no room for a job."""


def workspaces(kit: Path) -> dict[str, Path]:
    """Workspaces of the same provisioning that lie beside an admin's kit and have been started.

    So it is in a POC, and in a rehearsal on one machine; elsewhere there are none.
    """
    found = {}
    for other in sorted(kit.absolute().parent.iterdir()):
        server, site = ((other / "startup" / name).is_file() for name in _SERVICES)
        started = (server or site) and (other / "log.txt").is_file()
        if started and _root(kit) and _root(other) == _root(kit):
            found["server" if server else other.name] = other
    return found


def _root(kit: Path) -> bytes:
    root = kit / "startup" / "rootCA.pem"
    return root.read_bytes() if root.is_file() else b""


def job_store(server: Path) -> Path | None:
    """Folder of FLARE's job store at the server, by its kit; None where that does not say."""
    resources = server / "local" / "resources.json"
    if not resources.is_file():
        return None
    components = json.loads(resources.read_text(encoding="utf-8"))["components"]
    roots = [c["args"].get("uri_root") for c in components if c["id"] == "job_manager"]
    return Path(roots[0]) if roots and roots[0] else None


def free(folder: Path) -> int:
    """Bytes that are free on the disk of a folder, which need not be there yet."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def without_room(places: Workspaces) -> str:
    """Whose disks have less than `ROOM`, and how much; empty where all have it."""
    folders = dict(places)
    if "server" in places and (store := job_store(places["server"])) is not None:
        folders["server's job store"] = store
    short = {who: left for who, folder in folders.items() if (left := free(folder)) < ROOM}
    told = ", ".join(f"{who} ({folders[who]}) {n / 2**20:.0f} MB" for who, n in short.items())
    return told and f"{ROOM / 2**20:.0f} MB must be free for a job; {told}"


def copied(places: Workspaces, job_id: str, folder: Path) -> Path | None:
    """Copy the server's folder of a job that FLARE takes to be running, and so does not give away.

    Returns:
        The copy in `folder`, laid out as a download; None where the server's workspace is not at
        hand, or the job had not begun.
    """
    if "server" not in places or not (left := places["server"] / job_id).is_dir():
        return None
    target = folder / job_id / SERVER
    # Files that come and go while its process ends are not needed.
    ignored = shutil.ignore_patterns(".*", "*.tmp")
    shutil.copytree(left, target, ignore=ignored, dirs_exist_ok=True)
    return target


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
    store = job_store(kit)
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
