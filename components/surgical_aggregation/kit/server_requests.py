"""Drop messages that sites may not send through the server.

FLARE 2.9 forwards messages between sites. It also lets any site stop the server's processes by a
message of its network management, and accepts any origin with a token that is signed and no longer
registered.
"""

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet.core_cell import Message, make_reply
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, MessagePropKey, ReturnCode
from nvflare.fuel.f3.cellnet.fqcn import FQCN, FqcnInfo
from nvflare.fuel.f3.streaming.stream_const import StreamHeaderKey

from surgical_aggregation.kit.site_requests import message_topic

_MANAGEMENT = "_net_manager"
"""Channel by which FLARE's cells are inspected and stopped."""


class ServerRequests(FLComponent):
    """Drop messages with a false origin, between sites, and of network management from outside.

    Runs on the server, in its service, as a component of its local/resources.json. A job whose
    sites send messages to each other cannot run on this server.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Add the filter before the server starts."""
        if event_type == EventType.SYSTEM_BOOTSTRAP:
            cell = fl_ctx.get_prop(FLContextKey.SITE_OBJ).cell.core_cell
            cell.add_incoming_filter("*", "*", self.drop)

    def drop(self, message: Message) -> Message | None:
        """FLARE's filter of an incoming message, before it is forwarded or its content decoded.

        Returns:
            A reply, with which FLARE drops the message; None: FLARE handles it.
        """
        sender = FqcnInfo(message.get_prop(MessagePropKey.ENDPOINT).name)  # bound to a certificate
        origin = FqcnInfo(message.get_header(MessageHeaderKey.ORIGIN, ""))
        target = FqcnInfo(message.get_header(MessageHeaderKey.DESTINATION, ""))
        if origin.root != sender.root:
            why = f"came from {sender.fqcn!r}"
        elif origin.is_on_server:
            return None
        elif not target.is_on_server and not _same_site(origin.fqcn, target.fqcn):
            why = f"is for {target.fqcn!r}, and sites may not send each other messages"
        elif _MANAGEMENT in (
            message.get_header(MessageHeaderKey.CHANNEL),
            message.get_header(StreamHeaderKey.CHANNEL),
        ):
            why = "is not the server"
        else:
            return None
        topic = message_topic(message)
        self.logger.error(f"dropped the message {topic!r} of {origin.fqcn!r}: it {why}")
        return make_reply(ReturnCode.UNAUTHENTICATED)


def _same_site(cell: str, other: str) -> bool:
    return cell == other or FQCN.is_ancestor(cell, other) or FQCN.is_ancestor(other, cell)
