"""Ports of this machine: a free one, and who has one."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from random import SystemRandom

import psutil

LASTING = range(20000, 30000)
"""Ports that no system gives to outgoing connections, so that a free one stays free."""


class PortError(ValueError):
    """A server cannot have the port that it needs; the message names who has it."""


def free_port() -> int:
    """A port that nobody has.

    Raises:
        PortError: A hundred in a row are taken.
    """
    # From the system's randomness: Keras seeds Python's, alike in all processes.
    for port in SystemRandom().sample(LASTING, 100):
        with suppress(PortError):
            check_free(port)
            return port
    raise PortError(f"a free port is needed; none was found from {LASTING[0]} to {LASTING[-1]}.")


def check_free(port: int) -> None:
    """Make sure that a server could listen on a port.

    Two FLARE servers on one port would both start, and each get some of the other's sites.

    Raises:
        PortError: Somebody has it; the message names the process where this user may know it.
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


def wait_for_listener(port: int, timeout: float) -> None:
    """Wait until somebody listens on a port of this machine.

    Raises:
        TimeoutError: Nobody does in `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("localhost", port), timeout=1.0).close()
            return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError


def _holder(port: int) -> str:
    try:
        for connection in psutil.net_connections(kind="inet"):
            here = connection.laddr and connection.laddr.port == port
            if here and connection.status == psutil.CONN_LISTEN and connection.pid:
                process = psutil.Process(connection.pid)
                return f"process {process.pid} ({' '.join(process.cmdline())[:100]})"
    except psutil.Error:
        pass
    return "another process"
