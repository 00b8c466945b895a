"""The processes of a POC: its services, their watchdogs and their jobs, known by their folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

CONSOLE = "console.log"
"""In a service's kit: what it prints, also before it has a log."""

JOB = (".runner_process", ".worker_process")
SERVER = (".server_train",)

_LEFT_BEHIND = ("pid.fl", "daemon_pid.fl", "shutdown.fl", "restart.fl")


def start(kit: Path, environment: Mapping[str, str]) -> None:
    """Start a service by its kit's start.sh, and the watchdog that starts it again.

    In a session of its own and without a terminal, so that no interrupt meant for the caller ends
    it.

    Args:
        kit: Its startup kit.
        environment: All its variables.
    """
    with (kit / CONSOLE).open("a", encoding="utf-8") as console:
        subprocess.run(
            ["bash", str(kit / "startup" / "start.sh")],
            cwd=kit,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=True,
        )


def processes(folder: Path) -> list[psutil.Process]:
    """FLARE's processes that run from a folder, and their children; watchdogs first.

    An editor that has one of its files open is none.
    """
    found: dict[psutil.Process, bool] = {}
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        inside = any(word.startswith(f"{folder}{os.sep}") for word in words)
        watchdog = any(
            word.endswith(("/startup/sub_start.sh", "/startup/start.sh")) for word in words
        )
        if inside and (watchdog or any(word.startswith("nvflare.") for word in words)):
            found[process] = watchdog
    for process in list(found):
        try:
            children = process.children(recursive=True)
        except psutil.NoSuchProcess:
            continue
        for child in children:
            found.setdefault(child, False)
    return sorted(found, key=lambda process: not found[process])


def runs(services: Iterable[psutil.Process], *modules: str) -> bool:
    """Whether any of them is a process of one of FLARE's modules, named by their last words."""
    for process in services:
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if any(word.endswith(modules) for word in words):
            return True
    return False


def end(folder: Path, patience: float = 3.0) -> None:
    """End every process that runs from a folder; watchdogs first, for they start others again.

    Args:
        folder: See `processes`.
        patience: Seconds that they have to end by themselves before they are killed.
    """
    left = processes(folder)
    while left:
        for how in ("terminate", "kill"):
            for process in left:
                try:
                    getattr(process, how)()
                except psutil.NoSuchProcess:
                    continue
            _, left = psutil.wait_procs(left, timeout=patience)
        left = processes(folder)  # whoever was started meanwhile


def forget(kit: Path) -> None:
    """Remove what a service left behind that would keep it from starting; it must not run."""
    for name in _LEFT_BEHIND:
        (kit / name).unlink(missing_ok=True)
