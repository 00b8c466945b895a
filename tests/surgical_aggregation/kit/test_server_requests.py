from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.fuel.f3.cellnet import cell
from nvflare.fuel.f3.cellnet.core_cell import Message, _BulkSender
from nvflare.fuel.f3.cellnet.defs import Encoding, MessageHeaderKey, MessagePropKey, MessageType
from nvflare.fuel.f3.cellnet.fqcn import FqcnInfo
from nvflare.fuel.f3.endpoint import Endpoint
from nvflare.fuel.f3.streaming import byte_streamer, stream_const
from nvflare.fuel.f3.streaming.blob_streamer import BlobStream
from nvflare.fuel.f3.streaming.stream_const import StreamHeaderKey
from nvflare.private.defs import CellMessageHeaderKeys
from nvflare.widgets.fed_event import FED_EVENT_TOPIC

from flare import context
from surgical_aggregation.kit.server_requests import ServerRequests
from surgical_aggregation.wire import flare_internals

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
CHANNEL, TOPIC = MessageHeaderKey.CHANNEL, MessageHeaderKey.TOPIC


def message(sender="nih", origin=None, target="server", headers=()):
    """A message as it arrives from `sender`, which is its origin if no other is."""
    ends = {MessageHeaderKey.ORIGIN: origin or sender, MessageHeaderKey.DESTINATION: target}
    made = Message(dict(headers) | ends)
    made.set_prop(MessagePropKey.ENDPOINT, Endpoint(sender))
    return made


def dropped(*facts, **headers):
    return ServerRequests().drop(message(*facts, **headers)) is not None


@pytest.mark.parametrize(("sender", "origin", "target", "channel", "why"), [
    ("nih", "nih", "server", "task", ""),
    ("nih.job", "nih.job", "server.job", "aux_communication", ""),
    ("relay", "relay.nih.job", "server.job", "aux_communication", ""),
    ("nih.job", "nih.job", "nih", "client_main", ""),
    ("admin-1", "admin-1", "server", "admin", ""),
    ("server.job", "server.job", "nih.job", "aux_communication", ""),
    ("server.job", "server.job", "nih", "_net_manager", ""),
    ("nih", "server", "chexpert", "client_main", "came from 'nih'"),
    ("nih", "server.job", "server", "server_command", "came from 'nih'"),
    ("nih", "chexpert", "server", "task", "came from 'nih'"),
    ("nih", "nih", "chexpert", "client_main", "is for 'chexpert'"),
    ("nih.job", "nih.job", "chexpert.job", "aux_communication", "is for 'chexpert.job'"),
    ("relay", "relay.nih", "relay.chexpert.job", "task", "is for 'relay.chexpert.job'"),
    ("nih", "nih", "server", "_net_manager", "is not the server"),
    ("nih", "nih", "server", "server_parent_listener", "is not the server"),
    ("nih", "nih", "server.job", "server_command", "is not the server"),
    ("server.job", "server.job", "server", "server_parent_listener", ""),
    ("admin-1", "admin-1", "server.job", "_net_manager", "is not the server"),
])  # fmt: skip
def test_what_no_site_may_send_is_dropped(sender, origin, target, channel, why, caplog):
    found = dropped(sender, origin, target, {CHANNEL: channel})
    assert found == bool(why) and why in caplog.text


@pytest.mark.parametrize(("topic", "refused"), [
    ("get_task", False), ("submit_update", False), ("abort", True), ("get_errors", True),
])  # fmt: skip
@pytest.mark.parametrize("keys", [MessageHeaderKey, StreamHeaderKey])
def test_of_a_jobs_commands_a_site_may_get_tasks_and_submit_results(topic, refused, keys):
    command = {keys.CHANNEL: "server_command", keys.TOPIC: topic}
    assert dropped("nih.job", target="server.job", headers=command) == refused


def test_management_in_a_stream_is_dropped_and_named(caplog):
    stream = {CHANNEL: stream_const.STREAM_CHANNEL, TOPIC: stream_const.STREAM_DATA_TOPIC}
    managed = {StreamHeaderKey.CHANNEL: "_net_manager", StreamHeaderKey.TOPIC: "stop_cell"}
    assert dropped(headers=stream | managed)
    assert "dropped the message 'stop_cell' of 'nih': it is not the server" in caplog.text


@pytest.mark.parametrize("keys", [MessageHeaderKey, StreamHeaderKey])
def test_events_of_a_site_are_dropped_for_flare_would_fire_any_in_the_servers_processes(keys):
    event = {keys.CHANNEL: "aux_communication", keys.TOPIC: FED_EVENT_TOPIC}
    for target in ("server", "server.job"):
        assert dropped("nih.job", target=target, headers=event)
    assert not dropped("server.job", target="nih.job", headers=event)


def test_a_bulk_message_of_a_site_is_dropped_for_flare_handles_its_content_unfiltered():
    sent = []
    bulk = MagicMock(fire_and_forget=lambda **message: sent.append(message) or {"server": ""})
    sender = _BulkSender(bulk, "server", max_queue_size=1)
    sender.queue_message("aux_communication", "any", Message(None, b""))
    sender.send()
    headers = {CHANNEL: sent[0]["channel"], TOPIC: sent[0]["topic"]}
    assert dropped("nih", headers=headers) and not dropped("server.job", headers=headers)


@pytest.mark.parametrize(("headers", "why"), [
    ({MessageHeaderKey.ORIGINAL_HEADERS: {MessageHeaderKey.DESTINATION: "nih.job"}}, ""),
    ({StreamHeaderKey.FAILED_DESTINATION: "nih.job"}, ""),
    ({MessageHeaderKey.ORIGINAL_HEADERS: {MessageHeaderKey.DESTINATION: "mercy"}}, "'mercy'"),
    ({StreamHeaderKey.FAILED_DESTINATION: "mercy.job"}, "it replies for 'mercy.job'"),
    ({MessageHeaderKey.CONN_URL: "tcp://nih:8003"}, "it offers a connection"),
])  # fmt: skip
def test_a_site_replies_for_itself_and_offers_no_connection(headers, why, caplog):
    assert dropped("nih", target="server.job", headers=headers) == bool(why)
    assert why in caplog.text


@pytest.mark.parametrize("kind", ["BlobSizeError", "StreamTargetUnreachable"])
def test_a_message_too_large_for_a_site_ends_no_process(monkeypatch, kind):
    ended, job = [], SimpleNamespace(core_cell=SimpleNamespace(my_info=FqcnInfo("server.job")))
    monkeypatch.setattr(cell.os, "_exit", ended.append)
    error = {StreamHeaderKey.ERROR_TYPE: kind, StreamHeaderKey.ERROR_MSG: "stopped"}
    sent = message("nih.job", target="server.job", headers=error)
    assert ServerRequests().drop(sent) is None
    job.logger = MagicMock()
    cell.Cell._process_stream_error(job, sent)
    assert sent.get_header(StreamHeaderKey.ERROR_MSG) == "stopped" and not ended
    assert sent.get_header(StreamHeaderKey.ERROR_TYPE) in (None, "StreamTargetUnreachable")


@pytest.mark.parametrize("event", [
    EventType.SYSTEM_START, EventType.SYSTEM_BOOTSTRAP, EventType.BEFORE_BUILD_COMPONENT,
])  # fmt: skip
def test_the_filter_is_there_before_the_start_and_a_streams_id_tells_no_other(event, monkeypatch):
    """Whoever knows the id can acknowledge or end the stream to another site."""
    monkeypatch.setattr(byte_streamer, "gen_stream_id", iter(range(9)).__next__)
    added, guard = [], ServerRequests()
    core = SimpleNamespace(add_incoming_filter=lambda *arguments: added.append(arguments))
    server = SimpleNamespace(cell=SimpleNamespace(core_cell=core))
    fl_ctx = context(props={FLContextKey.SITE_OBJ: server, FLContextKey.CURRENT_JOB_ID: "job"})
    refusing = []
    monkeypatch.setattr(flare_internals, "refuse_unreadable_results", refusing.append)
    guard.handle_event(event, fl_ctx)
    assert added == [("*", "*", guard.drop)] * (event == EventType.SYSTEM_BOOTSTRAP)
    assert refusing == ["job"] * (event == EventType.BEFORE_BUILD_COMPONENT)  # before any result
    args = MagicMock(), 1, "", "", "nih", {}, BlobStream(b"", None), False, False, False
    sent = [byte_streamer.TxTask(*args).sid for _ in range(2)]
    if event == EventType.SYSTEM_START:
        assert sent == [0, 1]  # as FLARE counts them
    else:
        assert abs(sent[1] - sent[0]) > 10**6 and 0 <= min(sent) <= max(sent) < 2**62


@pytest.mark.parametrize(("header", "value", "why"), [
    (CellMessageHeaderKeys.TOKEN, UUID, ""),
    (CellMessageHeaderKeys.TOKEN, f"1{UUID}", "has a token that is none"),
    (CellMessageHeaderKeys.TOKEN, UUID[1:], "has a token that is none"),
    (CellMessageHeaderKeys.TOKEN, "server", "has a token that is none"),
    (StreamHeaderKey.SIZE, 64 * 2**20, ""),
    (StreamHeaderKey.SIZE, 64 * 2**20 + 1, "would reserve 67108865 bytes"),
])  # fmt: skip
def test_odd_tokens_and_streams_that_reserve_memory_are_dropped(header, value, why, caplog):
    headers = {CHANNEL: "task", header: value}
    assert dropped(headers=headers) == bool(why) and why in caplog.text
    headers[StreamHeaderKey.PAYLOAD_ENCODING] = Encoding.FOBS  # as results have
    assert dropped(headers=headers) == ("token" in why)


@pytest.mark.parametrize("kind", [MessageType.REQ, MessageType.REPLY])
def test_a_site_may_answer_what_the_server_asks_of_its_cell(kind):
    headers = {CHANNEL: "_net_manager", TOPIC: "peers", MessageHeaderKey.MSG_TYPE: kind}
    assert dropped(headers=headers) == (kind == MessageType.REQ)
