"""The processes of a POC (services, watchdogs, jobs), known by their folder, and their ports."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

import psutil

CONSOLE = "console.log"
"""In a service's kit: what it prints, also before it has a log."""

JOB = (".runner_process", ".worker_process")
SERVER = (".server_train",)

LASTING = range(20000, 30000)
"""Ports that no system gives to outgoing connections, so that a free one stays free."""

_LEFT_BEHIND = ("pid.fl", "daemon_pid.fl", "shutdown.fl", "restart.fl")
_WATCHDOG = ("/startup/sub_start.sh", "/startup/start.sh")


class PortError(ValueError):
    """A server cannot have the port that it needs; the message names who has it."""


def start(kit: Path, environment: Mapping[str, str]) -> None:
    """Start a service by its kit's start.sh, and the watchdog that starts it again.

    In a session of its own and without a terminal, so that no interrupt meant for the caller ends
    it; with `environment` as all its variables. What an earlier one left behind that would keep it
    from starting is removed.
    """
    for name in _LEFT_BEHIND:
        (kit / name).unlink(missing_ok=True)
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

    A program that only has one of its files open is none of them.
    """
    found: dict[psutil.Process, bool] = {}  # process -> whether it is a watchdog
    for process in psutil.process_iter():
        words = flares_words(process)
        if any(word.startswith(f"{folder}{os.sep}") for word in words):
            found[process] = any(word.endswith(_WATCHDOG) for word in words)
    for process in list(found):
        with suppress(psutil.NoSuchProcess):
            for child in process.children(recursive=True):
                found.setdefault(child, False)
    return sorted(found, key=lambda process: not found[process])


def runs(services: Iterable[psutil.Process], *modules: str) -> bool:
    """Whether any of them is a process of one of FLARE's modules, named by their last words."""
    return any(word.endswith(modules) for process in services for word in flares_words(process))


def end(folder: Path, patience: float = 3.0) -> None:
    """End every process that runs from a folder; watchdogs first, for they start others again.

    After `patience` seconds in which they may end by themselves they are killed.
    """
    left = processes(folder)
    while left:
        for how in (psutil.Process.terminate, psutil.Process.kill):
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    how(process)
            _, left = psutil.wait_procs(left, timeout=patience)
        left = processes(folder)  # whoever was started meanwhile


def flares_words(process: psutil.Process) -> list[str]:
    """The words of the command of a process or watchdog of FLARE's; of any other none."""
    with suppress(psutil.Error):  # it has ended or is not ours to look at
        words: list[str] = process.cmdline()
        if any(word.startswith("nvflare.") or word.endswith(_WATCHDOG) for word in words):
            return words
    return []


def free_port() -> int:
    """A port that nobody has."""
    # From the system's randomness: Keras seeds Python's, alike in all processes.
    for port in SystemRandom().sample(LASTING, 100):
        with suppress(PortError):
            check_free(port)
            return port
    raise PortError(f"a free port is needed; none was found from {LASTING[0]} to {LASTING[-1]}.")


def check_free(port: int) -> None:
    """Refuse a port that somebody has, and name the process where this user may know it.

    Two FLARE servers on one port would both start, and each get some of the other's sites.

    Raises:
        PortError: Somebody has it, or this user may not listen on it.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
        except PermissionError as error:
            raise PortError(
                f"the server needs port {port}, which this user may not listen on. Prepare with "
                "another --port, of 1024 or more."
            ) from error
        except OSError as error:
            raise PortError(
                f"the server needs port {port}; {_holder(port)} has it ({error.strerror}). End "
                "that process, or prepare with another --port."
            ) from error


def unreachable(host: str, port: int) -> str | None:
    """Why no connection to a server can be made; None where somebody listens."""
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError as error:  # "Connection refused", "Name or service not known", "timed out"
        return f"nobody listens at {host}:{port}: {error.strerror or error}"
    return None


def _holder(port: int) -> str:
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="inet"):
            here = connection.laddr and connection.laddr.port == port
            if here and connection.status == psutil.CONN_LISTEN and connection.pid:
                words = psutil.Process(connection.pid).cmdline()
                return f"process {connection.pid} ({' '.join(words)[:100]})"
    return "another process"
