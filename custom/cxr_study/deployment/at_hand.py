"""What of a system is on this machine: workspaces of server and sites, their jobs and disks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from cxr_study.runs.finished_run import SERVER

Workspaces = Mapping[str, Path]
"""Party ("server" or a site) -> its FLARE workspace."""

ROOM = 200 * 2**20
"""Bytes that a disk must have for a job: its checkpoints, results and archive with DenseNet121."""

_SERVICES = ("fed_server.json", "fed_client.json")


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
