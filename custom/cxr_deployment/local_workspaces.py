"""FLARE workspaces on this machine: where they are, free disk space, and the files of their jobs.

In a POC all workspaces are on one machine. In production it is usually one: the server's or one
site's. Every function here works with whatever is present.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
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

from cxr_deployment.processes import flare_command
from cxr_study.jobs import folder
from cxr_study.jobs.presets import JobError
from cxr_study.runs.finished_run import SERVER

Workspaces = Mapping[str, Path]
"""Party ("server" or the name of a site) -> its FLARE workspace."""

MIN_FREE = 200 * 2**20
"""Bytes that must be free on a disk for a job: checkpoints, results and archive of DenseNet121."""

_SERVICES = ("fed_server.json", "fed_client.json")

CHECKPOINTS = "checkpoints"
"""In a workspace: folder of checkpoints, a subfolder per job."""

NOTES = "local_notes"
"""In a workspace: folder of local notes, a text file per job."""

META, DATA = "meta", "data"
"""Files of a job in FLARE's job store: its metadata (JSON) and its job folder (zip)."""

_DAY = 24 * 60 * 60  # seconds
_LIVE = 1 / 24
"""Days within which a running job writes to one of its files."""


class DiskFullError(ValueError):
    """A disk has less than `MIN_FREE` bytes free, so no job is submitted."""


def workspaces(kit: Path) -> dict[str, Path]:
    """Find the workspaces of an admin's system on this machine.

    A workspace is found if it is in the same parent folder as the admin's kit, has the same root
    certificate (it comes from the same provisioning) and has been started. That is the case in a
    POC and in a rehearsal on one machine. Folders that cannot be read are left out.

    Args:
        kit: Folder of the admin's startup kit.

    Returns:
        Party -> workspace; empty where none is on this machine.
    """
    found = {}
    for other in sorted(kit.absolute().parent.glob("*")):
        with suppress(OSError):  # of another account
            server, site = ((other / "startup" / name).is_file() for name in _SERVICES)
            started = (server or site) and (other / "log.txt").is_file()
            if started and _root(kit) and _root(other) == _root(kit):
                found["server" if server else other.name] = other
    return found


def _root(kit: Path) -> bytes:
    """The root certificate in a kit, PEM; empty if there is none."""
    root = kit / "startup" / "rootCA.pem"
    return root.read_bytes() if root.is_file() else b""


def job_store(server: Path) -> Path | None:
    """Find the folder of FLARE's job store.

    Args:
        server: The server's workspace. Its local/resources.json names the folder.

    Returns:
        The folder, which need not exist yet; None if the file is missing or names none.
    """
    resources = server / "local" / "resources.json"
    if not resources.is_file():
        return None
    components = json.loads(resources.read_text(encoding="utf-8"))["components"]
    roots = [c["args"].get("uri_root") for c in components if c["id"] == "job_manager"]
    return Path(roots[0]) if roots and roots[0] else None


def free_bytes(folder: Path) -> int:
    """Free bytes on the disk of a folder; the folder need not exist yet."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free


def describe_full_disks(folders: Workspaces) -> str:
    """Check that every disk has `MIN_FREE` bytes free.

    Args:
        folders: Name -> folder on the disk to check. For "server", the disk of FLARE's job store is
            checked as well.

    Returns:
        A sentence that lists the disks with too little space; empty if there is none.
    """
    checked = dict(folders)
    if "server" in folders and (store := job_store(folders["server"])) is not None:
        checked["server's job store"] = store
    free = {name: free_bytes(folder) for name, folder in checked.items()}
    full = ", ".join(
        f"{name} ({checked[name]}) {size / 2**20:.0f} MB"
        for name, size in free.items()
        if size < MIN_FREE
    )
    return full and f"{MIN_FREE / 2**20:.0f} MB must be free for a job; {full}"


def copy_job_folder(places: Workspaces, job_id: str, folder: Path) -> Path | None:
    """Copy the server's folder of a job that FLARE lists as running and so does not download.

    Args:
        places: The workspaces on this machine.
        job_id: The job.
        folder: Where the copy goes, with the layout of a download.

    Returns:
        The copy, <folder>/<job id>/workspace; None if the server's workspace is not on this
        machine, or the job had not started.
    """
    if "server" not in places or not (source := places["server"] / job_id).is_dir():
        return None
    target = folder / job_id / SERVER
    # Temporary files may disappear while the job's process ends; they are not needed.
    ignored = shutil.ignore_patterns(".*", "*.tmp")
    shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
    return target


class JobFilesError(ValueError):
    """The folder is not a startup kit, or has no files of the job."""


@dataclass(frozen=True)
class JobFiles:
    """The files of one job in a kit.

    Attributes:
        job: The job's id.
        paths: Files and folders of the job that exist: checkpoints, local notes, FLARE's job
            folder, and at the server its entry in the job store.
        running: Whether a FLARE process on this machine runs the job.
    """

    job: str
    paths: tuple[Path, ...]
    running: bool

    @cached_property
    def _files(self) -> list[os.stat_result]:
        """Status of each file; a file with several hard links is listed once."""
        found: dict[int, os.stat_result] = {}
        for path in (path for top in self.paths for path in [top, *top.rglob("*")]):
            with suppress(FileNotFoundError):  # a running job removes its temporary files
                if stat.S_ISREG((facts := path.stat()).st_mode):
                    found[facts.st_ino] = facts
        return list(found.values())

    @property
    def size(self) -> int:
        """Total size in bytes; a file with several hard links counts once."""
        return sum(facts.st_size for facts in self._files)

    @property
    def age_days(self) -> float:
        """Days since the newest file was written."""
        changed = max([facts.st_mtime for facts in self._files or [self.paths[0].stat()]])
        return (time.time() - changed) / _DAY

    @property
    def _stored(self) -> Path | None:
        """The job's folder in the job store; None if the store is not on this machine."""
        return next((top for top in self.paths if (top / META).is_file()), None)

    @property
    def meta(self) -> Mapping[str, Any]:
        """FLARE's metadata of the job, such as "name", "status" and "submitter_name".

        Empty if the server's job store is not on this machine.
        """
        if (stored := self._stored) is None:
            return {}
        return json.loads((stored / META).read_text(encoding="utf-8"))

    @property
    def continues(self) -> str:
        """Ids of the jobs that this one continues, as its setting lists them.

        Empty if it continues none, or its configuration is not readable on this machine.
        """
        if (stored := self._stored) is None:
            return ""
        with suppress(OSError, BadZipFile, JobError), ZipFile(stored / DATA) as job:
            for name in job.namelist():
                if "config_fed_server." in name:
                    config = folder.parse(name, job.read(name).decode(errors="replace"))
                    return str(config.get("continues", ""))
        return ""

    @property
    def in_use(self) -> str:
        """Why the files cannot be removed: "running" or "waiting"; empty if they can.

        A job counts as running only if one of its files changed within the last hour: FLARE keeps
        the status of a job whose server was killed at RUNNING permanently.
        """
        status = self.meta.get("status", "")
        live = status in ("RUNNING", "DISPATCHED") and self.age_days < _LIVE
        return "running" if self.running or live else "waiting" * (status == "SUBMITTED")

    def remove(self) -> None:
        """Delete the files, and with them the job's entry in the job store."""
        for path in self.paths:
            with suppress(OSError):  # a job without metadata is no longer in the store
                (path / META).unlink()
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def find_job_files(kit: Path, jobs: Sequence[str] = (), older_than: float = 0) -> list[JobFiles]:
    """List the files of jobs in a kit, and at the server those in its job store, oldest first.

    FLARE reads the store from disk at every access. So a job whose files are removed is gone, even
    one that FLARE's `delete_job` always refuses, and no admin's kit is needed.

    Args:
        kit: Folder of a server's or site's startup kit.
        jobs: Ids of the jobs to list. Default: all.
        older_than: List only jobs without a change for so many days. Default 0.

    Raises:
        JobFilesError: `kit` is not a startup kit, or has no files of one of `jobs`.
    """
    if not (kit / "startup").is_dir():
        raise JobFilesError(f"the folder of a startup kit is needed, with startup/; got {kit}.")
    paths: dict[str, list[Path]] = {}
    store = job_store(kit)
    archived = list(store.iterdir()) if store is not None and store.is_dir() else []
    own = [*kit.glob(f"{CHECKPOINTS}/*"), *kit.glob(f"{NOTES}/*.txt")]
    for path in [*own, *kit.iterdir(), *archived]:
        if _is_job_id(path.stem):
            paths.setdefault(path.stem, []).append(path)
    if unknown := [job for job in jobs if job not in paths]:
        raise JobFilesError(f"{kit} has no files of job {', '.join(unknown)}.")
    running = {word for process in psutil.process_iter() for word in flare_command(process)}
    found = [JobFiles(job, tuple(paths[job]), job in running) for job in jobs or paths]
    old = [files for files in found if files.age_days >= older_than]
    return sorted(old, key=lambda files: -files.age_days)


def _is_job_id(name: str) -> bool:
    with suppress(ValueError):
        return str(UUID(name)) == name
    return False
