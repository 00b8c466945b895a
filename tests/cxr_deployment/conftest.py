import socket

import pytest


@pytest.fixture
def taken():
    """A port of this process."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        yield listener.getsockname()[1]
