from types import SimpleNamespace

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.fuel.f3.cellnet.core_cell import Message as CellMessage
from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey
from nvflare.private.admin_defs import Message
from nvflare.private.defs import SysCommandTopic, TrainingTopic

from flare import context
from surgical_aggregation.kit.site_requests import SiteRequests


@pytest.mark.parametrize(("origin", "service", "handled"), [
    *((origin, "nih", True) for origin in ("server", "server.job", "nih", "nih.job")),
    ("relay.nih.job", "relay.nih", True), ("relay", "relay.nih", True),
    ("relay.chexpert", "relay.nih", False), ("relay.nih2", "relay.nih", False),
    *((o, "nih", False) for o in ("chexpert", "chexpert.job", "nih2", "server2.job", "")),
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


def flares_cell(name):
    """A cell of FLARE, which keeps in `added` what filters it is given."""
    added = []
    cell = SimpleNamespace(added=added, get_fqcn=lambda: name)
    cell.add_incoming_filter = lambda *arguments: added.append(arguments)
    cell.add_incoming_request_filter, cell.core_cell = cell.add_incoming_filter, cell
    return cell


def test_the_filters_are_there_once_the_site_is_registered_and_before_a_job_starts():
    service, job, guard = flares_cell("nih"), flares_cell("nih.job"), SiteRequests()
    props = {FLContextKey.SITE_OBJ: SimpleNamespace(cell=service)}
    fl_ctx = context(engine=SimpleNamespace(get_cell=lambda: job), props=props)
    for event in (EventType.BEFORE_CLIENT_REGISTER, EventType.START_RUN):
        guard.handle_event(event, fl_ctx)
    assert not service.added and not job.added
    guard.handle_event(EventType.AFTER_CLIENT_REGISTER, fl_ctx)
    guard.handle_event(EventType.ABOUT_TO_START_RUN, fl_ctx)
    dropped = ("*", "*", guard.drop, "nih")
    assert service.added == [(CellChannel.CLIENT_MAIN, "*", guard.refuse), dropped]
    assert job.added == [dropped]
