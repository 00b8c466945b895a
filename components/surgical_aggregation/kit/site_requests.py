"""Refuse admin requests to a site that are not the server's, or that would read the site's files.

With FLARE 2.9 the server forwards a request from one site to another. The site takes the user, the
role, and whether to check rights at all from the request itself, so another site could read any
text file of the service's account, or deploy a job past the server.
"""

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet.core_cell import Message
from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey
from nvflare.fuel.f3.cellnet.fqcn import FQCN
from nvflare.private.admin_defs import error_reply
from nvflare.private.defs import SysCommandTopic, new_cell_message


class SiteRequests(FLComponent):
    """Answer only the server's admin requests, and none that reads files (cat, head, grep, ls).

    Runs on the client, in its service, as a component of its local/resources.json. The server binds
    the origin of every message to the sender's certificate; a site cannot send as the server.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Add the filter when the site is registered, before FLARE answers the first request."""
        if event_type == EventType.AFTER_CLIENT_REGISTER:
            cell = fl_ctx.get_prop(FLContextKey.SITE_OBJ).cell
            cell.core_cell.add_incoming_request_filter(CellChannel.CLIENT_MAIN, "*", self.refuse)

    def refuse(self, message: Message) -> Message | None:
        """FLARE's filter of an incoming request.

        Returns:
            The reply that refuses the request; None: FLARE answers it.
        """
        origin = message.get_header(MessageHeaderKey.ORIGIN)
        topic = getattr(message.payload, "topic", None)
        if origin != FQCN.ROOT_SERVER:
            self.logger.error(f"refused the admin request {topic!r} of {origin!r}, not the server")
            return new_cell_message({}, error_reply("this site answers only the server's requests"))
        if topic == SysCommandTopic.SHELL:
            return new_cell_message({}, error_reply("this site's files are read at the site only"))
        return None
