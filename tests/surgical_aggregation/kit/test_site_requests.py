import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet.core_cell import Message as CellMessage
from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey
from nvflare.private.admin_defs import Message
from nvflare.private.defs import SysCommandTopic, TrainingTopic

from surgical_aggregation.kit.site_requests import SiteRequests


@pytest.mark.parametrize(("origin", "topic", "reason"), [
    ("server", TrainingTopic.DEPLOY, None),
    ("server", SysCommandTopic.SYS_INFO, None),
    ("server", SysCommandTopic.SHELL, "files are read at the site only"),
    ("server.job", TrainingTopic.DEPLOY, "only the server's requests"),
    ("chexpert", TrainingTopic.DEPLOY, "only the server's requests"),
    ("chexpert", SysCommandTopic.SHELL, "only the server's requests"),
    (None, SysCommandTopic.SYS_INFO, "only the server's requests"),
])  # fmt: skip
def test_the_server_alone_is_answered_and_never_about_files(origin, topic, reason):
    message = CellMessage({MessageHeaderKey.ORIGIN: origin}, Message(topic=topic, body=""))
    reply = SiteRequests().refuse(message)
    assert (reply is None) if reason is None else reason in reply.payload.body


def test_the_filter_is_there_once_the_site_is_registered():
    added = []

    class Cell:
        def add_incoming_request_filter(self, *arguments):
            added.append(arguments)

    class Site:
        cell = type("Outer", (), {"core_cell": Cell()})()

    fl_ctx, guard = FLContext(), SiteRequests()
    fl_ctx.set_prop(FLContextKey.SITE_OBJ, Site(), private=True, sticky=False)
    guard.handle_event(EventType.BEFORE_CLIENT_REGISTER, fl_ctx)
    assert added == []
    guard.handle_event(EventType.AFTER_CLIENT_REGISTER, fl_ctx)
    assert added == [(CellChannel.CLIENT_MAIN, "*", guard.refuse)]
