"""Drop other sites' messages to a site, and refuse requests that would read the site's files.

With FLARE 2.9 the server forwards messages from one site to another, whose service and job
processes answer them: admin requests, with whatever user and role the message states (another site
could read any text file of the service's account, or deploy a job past the server); tasks of a
running job, on any model; requests to end the job or the service.
"""

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet.core_cell import Message, make_reply
from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey, ReturnCode
from nvflare.fuel.f3.cellnet.fqcn import FQCN, FqcnInfo
from nvflare.fuel.f3.streaming.stream_const import StreamHeaderKey
from nvflare.private.admin_defs import error_reply
from nvflare.private.defs import SysCommandTopic, new_cell_message


class SiteRequests(FLComponent):
    """Drop messages that are neither the server's, nor a relay's above, nor this site's own.

    Runs on the client: in its service, as a component of its local/resources.json, where it also
    refuses to read files (cat, head, grep, ls); and in every job's process, as a component of its
    local/privacy.json. A job whose sites send messages to each other cannot run at this site.

    The server binds the origin of every message to the sender's certificate (see
    `server_requests`), so a site cannot send as the server. A relay does not: its sites depend on
    each other.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Add the filters: when the site is registered, and before a job's run starts."""
        if event_type == EventType.AFTER_CLIENT_REGISTER:  # before FLARE answers the first request
            cell = fl_ctx.get_prop(FLContextKey.SITE_OBJ).cell.core_cell
            service = cell.get_fqcn()
            cell.add_incoming_request_filter(CellChannel.CLIENT_MAIN, "*", self.refuse)
        elif event_type == EventType.ABOUT_TO_START_RUN:
            cell = fl_ctx.get_engine().get_cell().core_cell
            service = FQCN.get_parent(cell.get_fqcn())
        else:
            return
        cell.add_incoming_filter("*", "*", self.drop, service)

    def drop(self, message: Message, service: str) -> Message | None:
        """FLARE's filter of an incoming message, before its content is decoded.

        Args:
            message: For this process, or to be forwarded to another of this site.
            service: Cell of this site's service.

        Returns:
            A reply, with which FLARE drops the message; None: FLARE handles it.
        """
        origin = message.get_header(MessageHeaderKey.ORIGIN, "")
        own = origin == service or FQCN.is_ancestor(service, origin)
        if own or FQCN.is_ancestor(origin, service) or FqcnInfo(origin).is_on_server:
            return None
        topic = message_topic(message)
        self.logger.error(f"dropped the message {topic!r} of {origin!r}, which is not the server")
        return make_reply(ReturnCode.UNAUTHENTICATED)

    def refuse(self, message: Message) -> Message | None:
        """FLARE's filter of an incoming admin request.

        Returns:
            The reply that refuses to read files; None: FLARE answers the request.
        """
        if getattr(message.payload, "topic", None) != SysCommandTopic.SHELL:
            return None
        self.logger.error("refused the server's request to read this site's files")
        return new_cell_message({}, error_reply("this site's files are read at the site only"))


def message_topic(message: Message) -> str | None:
    """What a message of FLARE's cells is about, also one that is part of a stream."""
    topic: str | None = message.get_header(StreamHeaderKey.TOPIC)
    return topic or message.get_header(MessageHeaderKey.TOPIC)
