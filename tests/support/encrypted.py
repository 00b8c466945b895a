"""Sites and a server that encrypt: FLARE contexts and messages around the real components."""

from nvflare.apis.dxo import from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.lighter.impl.he import HEBuilder

from flare import context
from surgical_aggregation.encryption.decrypt_task import DecryptTask
from surgical_aggregation.encryption.encrypt_result import EncryptResult
from surgical_aggregation.encryption.encrypted_aggregator import EncryptedSurgicalAggregator


def provision(folder):
    """Write a site's and the server's context, as FLARE provisions them."""
    builder = HEBuilder()
    builder.initialize(None, None)
    folder.mkdir(parents=True, exist_ok=True)
    for name, is_client in {"client": True, "server": False}.items():
        content = builder.get_serialized_context(is_client)
        (folder / f"{name}_context.tenseal").write_bytes(content)


def insecure(fl_ctx):
    """As in the simulator, where startup kits are not signed."""
    fl_ctx.set_prop(FLContextKey.SECURE_MODE, False, private=True, sticky=True)
    return fl_ctx


def started(component):
    component.handle_event(EventType.START_RUN, insecure(context("server")))
    return component


def encrypted(shareable, **arguments):
    """A site's result as it leaves the site."""
    return started(EncryptResult(**arguments)).process(shareable, insecure(context("server")))


def decrypted(shareable):
    """A task's variables as the site's executor gets them."""
    task = started(DecryptTask()).process(shareable, insecure(context("server")))
    return from_shareable(task).data


def aggregator(**arguments):
    return started(EncryptedSurgicalAggregator(**arguments))
