"""Homomorphic encryption with contexts as FLARE's HEBuilder provisions them."""

from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def startup(tmp_path_factory):
    """A startup folder with the site's and the server's context."""
    import encrypted

    folder = tmp_path_factory.mktemp("startup")
    encrypted.provision(folder)
    return folder


@pytest.fixture(scope="module")
def provisioned(startup):
    """Let FLARE's components find the startup folder."""
    from nvflare.fuel.sec import security_content_service as service

    manager = service.SecurityContentManager(str(startup))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.SecurityContentService, "security_content_manager", manager)
        yield


@pytest.fixture(scope="session")
def contexts(startup):
    """Both contexts, loaded."""
    import tenseal

    def load(name):
        return tenseal.context_from((startup / f"{name}_context.tenseal").read_bytes())

    return SimpleNamespace(site=load("client"), server=load("server"))
