"""The processes of a POC (services, watchdogs, jobs), identified by their folder, and their ports.

FLARE starts each service through a watchdog, the kit's startup/sub_start.sh, which restarts it.
A service starts one process per job.
"""

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
"""In a service's kit: its standard output and error, also from before its log exists."""

JOB = (".runner_process", ".worker_process")
"""Ends of the names of FLARE's modules that run a job, at the server and at a site."""

SERVER = (".server_train",)
"""End of the name of FLARE's module that runs the server."""

STABLE_PORTS = range(20000, 30000)
"""Ports outside the range that systems assign to outgoing connections; a free one stays free."""

_STALE_FILES = ("pid.fl", "daemon_pid.fl", "shutdown.fl", "restart.fl")
_WATCHDOG = ("/startup/sub_start.sh", "/startup/start.sh")


class PortError(ValueError):
    """The server's port is not available; the message names the process that uses it."""


def start(kit: Path, environment: Mapping[str, str]) -> None:
    """Start a service and its watchdog by the kit's start.sh.

    They run in a session of their own without a terminal, so an interrupt of the caller does not
    reach them. State files of an earlier process that would prevent the start are removed first.

    Args:
        kit: The service's startup kit. Output is appended to its `CONSOLE`.
        environment: All environment variables of the service; none is inherited.

    Raises:
        CalledProcessError: start.sh failed.
    """
    for name in _STALE_FILES:
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


def find_processes(folder: Path) -> list[psutil.Process]:
    """Find FLARE's processes whose command lines name files in a folder, and their children.

    Other programs, such as an editor with a file of the folder open, are not included.

    Args:
        folder: Absolute path of a POC or of one kit.

    Returns:
        Watchdogs first, so that they can be terminated before they restart a service.
    """
    found: dict[psutil.Process, bool] = {}  # process -> whether it is a watchdog
    for process in psutil.process_iter():
        command = flare_command(process)
        if any(argument.startswith(f"{folder}{os.sep}") for argument in command):
            found[process] = any(argument.endswith(_WATCHDOG) for argument in command)
    for process in list(found):
        with suppress(psutil.NoSuchProcess):
            for child in process.children(recursive=True):
                found.setdefault(child, False)
    return sorted(found, key=lambda process: not found[process])


def any_runs(services: Iterable[psutil.Process], *modules: str) -> bool:
    """Whether any process runs one of FLARE's modules, given by the ends of their names.

    Args:
        services: Processes, as `find_processes` returns them.
        modules: Such as `JOB` or `SERVER`.
    """
    return any(word.endswith(modules) for process in services for word in flare_command(process))


def terminate(folder: Path, patience: float = 3.0) -> None:
    """End all FLARE processes of a folder, watchdogs first, including any started meanwhile.

    Args:
        folder: As in `find_processes`.
        patience: Seconds between SIGTERM and SIGKILL. Default 3.

    Raises:
        PermissionError: A process belongs to another account.
    """
    remaining = find_processes(folder)
    while remaining:
        for send_signal in (psutil.Process.terminate, psutil.Process.kill):
            for process in remaining:
                try:
                    send_signal(process)
                except psutil.NoSuchProcess:
                    pass
                except psutil.AccessDenied:
                    raise PermissionError(
                        f"process {process.pid} of {folder} belongs to another account: stop it "
                        "from there."
                    ) from None
            _, remaining = psutil.wait_procs(remaining, timeout=patience)
        remaining = find_processes(folder)  # those started meanwhile


def flare_command(process: psutil.Process) -> list[str]:
    """Command line of a FLARE process or watchdog, a string per argument.

    Empty for any other process, and for one that has ended or that this user may not inspect.
    """
    with suppress(psutil.Error):
        words: list[str] = process.cmdline()
        if any(word.startswith("nvflare.") or word.endswith(_WATCHDOG) for word in words):
            return words
    return []


def free_port() -> int:
    """Choose a free port at random from `STABLE_PORTS`.

    Raises:
        PortError: None of 100 ports is free.
    """
    # From the system's randomness: Keras seeds Python's generator, equally in all processes.
    for port in SystemRandom().sample(STABLE_PORTS, 100):
        with suppress(PortError):
            check_free(port)
            return port
    raise PortError(
        f"a free port is needed; none was found from {STABLE_PORTS[0]} to {STABLE_PORTS[-1]}."
    )


def check_free(port: int) -> None:
    """Check that this user can listen on a port.

    FLARE itself does not check: two servers on one port both start, and sites connect to either.

    Raises:
        PortError: Another process uses the port (named if this user may see it), or this user may
            not listen on it.
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
                f"the server needs port {port}; {_describe_listener(port)} has it "
                f"({error.strerror}). End that process, or prepare with another --port."
            ) from error


def connection_error(host: str, port: int) -> str | None:
    """Why a TCP connection to a server fails within a second; None if it succeeds."""
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError as error:  # "Connection refused", "Name or service not known", "timed out"
        return f"no server listens at {host}:{port}: {error.strerror or error}"
    return None


def _describe_listener(port: int) -> str:
    """The process that listens on a port, with its command; "another process" if not visible."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="inet"):
            here = connection.laddr and connection.laddr.port == port
            if here and connection.status == psutil.CONN_LISTEN and connection.pid:
                words = psutil.Process(connection.pid).cmdline()
                return f"process {connection.pid} ({' '.join(words)[:100]})"
    return "another process"
