import shutil
import socket
from pathlib import Path

import pytest

from cxr_deployment.poc_system import PocProject
from once import once

PROJECT = Path(__file__).parents[2] / "poc/project.yml"


@pytest.fixture(scope="session")
def provisioned(tmp_path_factory):
    """Startup kits of the project file, as FLARE makes them."""
    make = PocProject.read(PROJECT).provision
    return once(tmp_path_factory, "provisioned", make) / "surgical_cxr/prod_00"


@pytest.fixture
def kits(provisioned, tmp_path):
    """A copy of them that a test may change."""
    return Path(shutil.copytree(provisioned, tmp_path / "kits"))


@pytest.fixture
def taken():
    """A port of this process."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        yield listener.getsockname()[1]
