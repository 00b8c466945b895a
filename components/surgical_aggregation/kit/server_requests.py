"""Drop messages that sites may not send through the server.

FLARE 2.9 forwards messages between sites. It answers any site on the channels of its own processes:
a site of no job can stop the server, or abort a job and see its errors. It handles what a bulk
message holds without the filters of its cells, lets a site reply for another one, and connects to
any address that a site offers, where the site could act as the server. It fires any event that a
site names in the server's processes, also one that ends a job or removes its best model. It counts
the ids of its streams, and a site that knows an id can end the stream. It ends a job's process when
a site reports that a message was too large, and reserves the memory that a stream's header asks
for. It accepts any origin with a token that is signed and no longer registered; and since it signs
a site's name and token as one text, a site can move letters from one to the other and pass for
another site.
"""

import secrets
from functools import partial

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet.core_cell import _TOPIC_BULK, Message, make_reply
from nvflare.fuel.f3.cellnet.defs import (
    CellChannel,
    Encoding,
    MessageHeaderKey,
    MessagePropKey,
    MessageType,
    ReturnCode,
)
from nvflare.fuel.f3.cellnet.fqcn import FQCN, FqcnInfo
from nvflare.fuel.f3.cellnet.net_agent import _CHANNEL as NET_MANAGER
from nvflare.fuel.f3.streaming import byte_streamer
from nvflare.fuel.f3.streaming.stream_const import StreamHeaderKey
from nvflare.fuel.f3.streaming.stream_types import BlobSizeError
from nvflare.private.defs import CellMessageHeaderKeys
from nvflare.private.fed.server.server_commands import ServerCommands
from nvflare.widgets.fed_event import FED_EVENT_TOPIC

from surgical_aggregation.kit.site_requests import message_topic
from surgical_aggregation.wire import flare_internals

_INTERNAL = (NET_MANAGER, CellChannel.SERVER_PARENT_LISTENER)
"""Channels by which FLARE's cells are inspected and stopped, and its job processes report."""

_TOKEN = 36
"""Characters of a token: of a UUID."""

_RESERVED = 64 * 2**20
"""Most bytes of a stream that FLARE reserves at once; results are not such streams."""


class ServerRequests(FLComponent):
    """Drop messages with a false origin, between sites, and for the server's own processes alone.

    Also dropped: sites' events, bulk messages, replies and errors for another site, offers of a
    connection, tokens that are none, and streams that would reserve much memory. A message that was
    too large for one site fails for that site alone, as does a result that cannot be decoded.

    Runs on the server, in its service, as a component of its local/resources.json, where it sees
    all messages of sites; and in every job's process, whose streams get random ids. A job whose
    sites send each other messages, or events to the server (FLARE's `ConvertToFedEvent`), cannot
    run on this server.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Add the filter before the server starts; in each process, let no stream's id be known."""
        # A job's process has this part of resources.json only while it builds the job's components.
        if event_type in (EventType.SYSTEM_BOOTSTRAP, EventType.BEFORE_BUILD_COMPONENT):
            byte_streamer.gen_stream_id = partial(secrets.randbits, 62)
        if event_type == EventType.BEFORE_BUILD_COMPONENT:  # sites may already send results
            flare_internals.refuse_unreadable_results(fl_ctx.get_prop(FLContextKey.CURRENT_JOB_ID))
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
        elif _internal(message):
            why = "is not the server"
        elif not all(_same_site(origin.fqcn, cell) for cell in _stands_for(message)):
            why = f"replies for {', '.join(_stands_for(message))!r}"
        elif message.get_header(MessageHeaderKey.CONN_URL):
            why = "offers a connection"
        elif len(message.get_header(CellMessageHeaderKeys.TOKEN) or " " * _TOKEN) != _TOKEN:
            why = "has a token that is none"
        elif _reserved(message) > _RESERVED:
            why = f"would reserve {_reserved(message)} bytes"
        else:
            if message.get_header(StreamHeaderKey.ERROR_TYPE) == BlobSizeError.__name__:
                message.remove_header(StreamHeaderKey.ERROR_TYPE)  # FLARE would end the job for all
            return None
        topic = message_topic(message)
        self.logger.error(f"dropped the message {topic!r} of {origin.fqcn!r}: it {why}")
        return make_reply(ReturnCode.UNAUTHENTICATED)


def _internal(message: Message) -> bool:
    """Whether a request, or the stream that it is part of, is for the server's processes alone."""
    if message.get_header(MessageHeaderKey.MSG_TYPE) == MessageType.REPLY:
        return False
    for keys in (MessageHeaderKey, StreamHeaderKey):
        channel, topic = message.get_header(keys.CHANNEL), message.get_header(keys.TOPIC)
        of_sites = topic in ServerCommands.client_request_commands_names
        bulk = (channel, topic) == (CellChannel.CELLNET, _TOPIC_BULK)  # could hold any message
        if channel in _INTERNAL or bulk or topic == FED_EVENT_TOPIC:
            return True
        if channel == CellChannel.SERVER_COMMAND and not of_sites:
            return True
    return False


def _reserved(message: Message) -> int:
    """Bytes that FLARE reserves for the stream that a message is part of."""
    encoded = message.get_header(StreamHeaderKey.PAYLOAD_ENCODING)
    return 0 if encoded == Encoding.FOBS else int(message.get_header(StreamHeaderKey.SIZE) or 0)


def _stands_for(message: Message) -> list[str]:
    """Cells that did not answer themselves, by FLARE's report that it could not reach them."""
    returned = message.get_header(MessageHeaderKey.ORIGINAL_HEADERS) or {}
    cells = (
        returned.get(MessageHeaderKey.DESTINATION),
        message.get_header(StreamHeaderKey.FAILED_DESTINATION),
    )
    return [cell for cell in cells if cell]


def _same_site(cell: str, other: str) -> bool:
    return cell == other or FQCN.is_ancestor(cell, other) or FQCN.is_ancestor(other, cell)
