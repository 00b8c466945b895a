import os

import psutil
import pytest

from cxr_study.deployment.ports import PortError, check_free, free_port, wait_for_listener


def test_a_free_port_is_free():
    check_free(free_port())


def test_who_has_a_port_is_named(taken):
    with pytest.raises(PortError, match=rf"needs port {taken}; process {os.getpid()} \(.*python"):
        check_free(taken)


def test_where_processes_may_not_be_seen_the_port_is_named_still(taken, monkeypatch):
    def denied(**_):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", denied)
    with pytest.raises(PortError, match=f"needs port {taken}; another process has it"):
        check_free(taken)


def test_a_listener_that_is_there_is_found(taken):
    wait_for_listener(taken, timeout=5)


def test_nobody_is_waited_for_no_longer_than_said():
    with pytest.raises(TimeoutError):
        wait_for_listener(free_port(), timeout=0.3)


def test_a_port_that_this_user_may_not_have_is_no_others(monkeypatch):
    class Socket:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def setsockopt(self, *_):
            pass

        def bind(self, address):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("cxr_study.deployment.ports.socket.socket", Socket)
    with pytest.raises(PortError, match="needs port 80, which this user may not listen on"):
        check_free(80)
