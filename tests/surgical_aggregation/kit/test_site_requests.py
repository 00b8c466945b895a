from types import SimpleNamespace

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet.core_cell import Message as CellMessage
from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey
from nvflare.private.admin_defs import Message
from nvflare.private.defs import SysCommandTopic, TrainingTopic

from surgical_aggregation.kit.site_requests import SiteRequests


@pytest.mark.parametrize(("origin", "service", "handled"), [
    ("server", "nih", True),
    ("server.job", "nih", True),
    ("nih", "nih", True),
    ("nih.job", "nih", True),
    ("relay.nih.job", "relay.nih", True),
    ("relay", "relay.nih", True),
    ("relay.chexpert", "relay.nih", False),
    ("relay.nih2", "relay.nih", False),
    ("chexpert", "nih", False),
    ("chexpert.job", "nih", False),
    ("nih2", "nih", False),
    ("server2.job", "nih", False),
    ("", "nih", False),
])  # fmt: skip
def test_messages_are_handled_of_the_server_a_relay_above_and_this_site(origin, service, handled):
    message = CellMessage({MessageHeaderKey.ORIGIN: origin})
    assert (SiteRequests().drop(message, service) is None) == handled


@pytest.mark.parametrize(("topic", "refused"), [
    (SysCommandTopic.SHELL, True), (SysCommandTopic.SYS_INFO, False), (TrainingTopic.DEPLOY, False),
])  # fmt: skip
def test_no_request_reads_files(topic, refused):
    reply = SiteRequests().refuse(CellMessage({}, Message(topic=topic, body="cat secret")))
    assert ("files are read at the site only" in reply.payload.body) if refused else reply is None


class Cell:
    """A cell of FLARE, which keeps what filters it is given."""

    def __init__(self, name):
        self.core_cell, self.name, self.added = self, name, []

    def get_fqcn(self):
        return self.name

    def add_incoming_filter(self, *arguments):
        self.added.append(arguments)

    add_incoming_request_filter = add_incoming_filter


def test_the_filters_are_there_once_the_site_is_registered_and_before_a_job_starts():
    service, job, guard = Cell("nih"), Cell("nih.job"), SiteRequests()
    engine = SimpleNamespace(get_cell=lambda: job)
    fl_ctx = FLContext()
    fl_ctx.get_engine = lambda: engine
    fl_ctx.set_prop(FLContextKey.SITE_OBJ, SimpleNamespace(cell=service), private=True)
    for event in (EventType.BEFORE_CLIENT_REGISTER, EventType.START_RUN):
        guard.handle_event(event, fl_ctx)
    assert not service.added and not job.added
    guard.handle_event(EventType.AFTER_CLIENT_REGISTER, fl_ctx)
    guard.handle_event(EventType.ABOUT_TO_START_RUN, fl_ctx)
    dropped = ("*", "*", guard.drop, "nih")
    assert service.added == [(CellChannel.CLIENT_MAIN, "*", guard.refuse), dropped]
    assert job.added == [dropped]
