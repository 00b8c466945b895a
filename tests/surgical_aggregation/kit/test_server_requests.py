from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.fuel.f3.cellnet import cell
from nvflare.fuel.f3.cellnet.core_cell import Message, _BulkSender
from nvflare.fuel.f3.cellnet.defs import (
    Encoding,
    MessageHeaderKey,
    MessagePropKey,
    MessageType,
)
from nvflare.fuel.f3.cellnet.fqcn import FqcnInfo
from nvflare.fuel.f3.endpoint import Endpoint
from nvflare.fuel.f3.streaming import byte_streamer
from nvflare.fuel.f3.streaming.blob_streamer import BlobStream
from nvflare.fuel.f3.streaming.stream_const import (
    STREAM_CHANNEL,
    STREAM_DATA_TOPIC,
    StreamHeaderKey,
)
from nvflare.private.defs import CellMessageHeaderKeys

from surgical_aggregation.kit.server_requests import ServerRequests

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


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
def test_dropped_are_false_origins_messages_between_sites_and_management(
    sender, origin, target, channel, why, caplog
):
    headers = {
        MessageHeaderKey.ORIGIN: origin,
        MessageHeaderKey.DESTINATION: target,
        MessageHeaderKey.CHANNEL: channel,
    }
    message = Message(headers)
    message.set_prop(MessagePropKey.ENDPOINT, Endpoint(sender))
    assert (ServerRequests().drop(message) is not None) == bool(why)
    assert why in caplog.text


@pytest.mark.parametrize(("topic", "dropped"), [
    ("get_task", False), ("submit_update", False), ("abort", True), ("get_errors", True),
])  # fmt: skip
@pytest.mark.parametrize("keys", [MessageHeaderKey, StreamHeaderKey])
def test_of_a_jobs_commands_a_site_may_get_tasks_and_submit_results(topic, dropped, keys):
    headers = {
        MessageHeaderKey.ORIGIN: "nih.job", MessageHeaderKey.DESTINATION: "server.job",
        keys.CHANNEL: "server_command", keys.TOPIC: topic,
    }  # fmt: skip
    message = Message(headers)
    message.set_prop(MessagePropKey.ENDPOINT, Endpoint("nih.job"))
    assert (ServerRequests().drop(message) is not None) == dropped


def test_management_in_a_stream_is_dropped_and_named(caplog):
    headers = {
        MessageHeaderKey.ORIGIN: "nih", MessageHeaderKey.DESTINATION: "server",
        MessageHeaderKey.CHANNEL: STREAM_CHANNEL, StreamHeaderKey.CHANNEL: "_net_manager",
        MessageHeaderKey.TOPIC: STREAM_DATA_TOPIC, StreamHeaderKey.TOPIC: "stop_cell",
    }  # fmt: skip
    message = Message(headers)
    message.set_prop(MessagePropKey.ENDPOINT, Endpoint("nih"))
    assert ServerRequests().drop(message) is not None
    assert "dropped the message 'stop_cell' of 'nih': it is not the server" in caplog.text


def test_a_bulk_message_of_a_site_is_dropped_for_flare_handles_its_content_unfiltered():
    sent = []
    bulk = MagicMock(fire_and_forget=lambda **message: sent.append(message) or {"server": ""})
    sender = _BulkSender(bulk, "server", max_queue_size=1)
    sender.queue_message("aux_communication", "any", Message(None, b""))
    sender.send()
    for origin, dropped in (("nih", True), ("server.job", False)):
        message = Message({
            MessageHeaderKey.ORIGIN: origin, MessageHeaderKey.DESTINATION: "server",
            MessageHeaderKey.CHANNEL: sent[0]["channel"], MessageHeaderKey.TOPIC: sent[0]["topic"],
        })  # fmt: skip
        message.set_prop(MessagePropKey.ENDPOINT, Endpoint(origin))
        assert (ServerRequests().drop(message) is not None) == dropped


@pytest.mark.parametrize(("headers", "why"), [
    ({MessageHeaderKey.ORIGINAL_HEADERS: {MessageHeaderKey.DESTINATION: "nih.job"}}, ""),
    ({StreamHeaderKey.FAILED_DESTINATION: "nih.job"}, ""),
    ({MessageHeaderKey.ORIGINAL_HEADERS: {MessageHeaderKey.DESTINATION: "mercy"}}, "'mercy'"),
    ({StreamHeaderKey.FAILED_DESTINATION: "mercy.job"}, "it replies for 'mercy.job'"),
    ({MessageHeaderKey.CONN_URL: "tcp://nih:8003"}, "it offers a connection"),
])  # fmt: skip
def test_a_site_replies_for_itself_and_offers_no_connection(headers, why, caplog):
    ends = {MessageHeaderKey.ORIGIN: "nih", MessageHeaderKey.DESTINATION: "server.job"}
    message = Message(headers | ends)
    message.set_prop(MessagePropKey.ENDPOINT, Endpoint("nih"))
    assert (ServerRequests().drop(message) is not None) == bool(why)
    assert why in caplog.text


@pytest.mark.parametrize("kind", ["BlobSizeError", "StreamTargetUnreachable"])
def test_a_message_too_large_for_a_site_ends_no_process(monkeypatch, kind):
    ended, job = [], SimpleNamespace(core_cell=SimpleNamespace(my_info=FqcnInfo("server.job")))
    monkeypatch.setattr(cell.os, "_exit", ended.append)
    message = Message({
        MessageHeaderKey.ORIGIN: "nih.job", MessageHeaderKey.DESTINATION: "server.job",
        StreamHeaderKey.ERROR_TYPE: kind, StreamHeaderKey.ERROR_MSG: "stopped",
    })  # fmt: skip
    message.set_prop(MessagePropKey.ENDPOINT, Endpoint("nih.job"))
    assert ServerRequests().drop(message) is None
    job.logger = MagicMock()
    cell.Cell._process_stream_error(job, message)
    assert message.get_header(StreamHeaderKey.ERROR_MSG) == "stopped" and not ended
    assert message.get_header(StreamHeaderKey.ERROR_TYPE) in (None, "StreamTargetUnreachable")


@pytest.mark.parametrize("event", [EventType.SYSTEM_BOOTSTRAP, EventType.BEFORE_BUILD_COMPONENT])
def test_the_id_of_a_stream_does_not_tell_those_of_others(event, monkeypatch):
    """Whoever knows the id can acknowledge or end the stream to another site."""
    monkeypatch.setattr(byte_streamer, "gen_stream_id", iter(range(9)).__next__)
    fl_ctx = FLContext()
    own = SimpleNamespace(core_cell=SimpleNamespace(add_incoming_filter=lambda *_: None))
    fl_ctx.set_prop(FLContextKey.SITE_OBJ, SimpleNamespace(cell=own), private=True, sticky=False)
    ServerRequests().handle_event(event, fl_ctx)
    stream = BlobStream(b"", None)
    args = MagicMock(), 1, "", "", "nih", {}, stream, False, False, False
    sent = [byte_streamer.TxTask(*args).sid for _ in range(2)]
    assert abs(sent[1] - sent[0]) > 10**6 and 0 <= min(sent) <= max(sent) < 2**62


def test_the_filter_is_there_before_the_server_starts():
    added = []
    core = SimpleNamespace(add_incoming_filter=lambda *arguments: added.append(arguments))
    fl_ctx, guard = FLContext(), ServerRequests()
    server = SimpleNamespace(cell=SimpleNamespace(core_cell=core))
    fl_ctx.set_prop(FLContextKey.SITE_OBJ, server, private=True, sticky=False)
    guard.handle_event(EventType.SYSTEM_START, fl_ctx)
    assert added == []
    guard.handle_event(EventType.SYSTEM_BOOTSTRAP, fl_ctx)
    assert added == [("*", "*", guard.drop)]


@pytest.mark.parametrize(("header", "value", "why"), [
    (CellMessageHeaderKeys.TOKEN, UUID, ""),
    (CellMessageHeaderKeys.TOKEN, f"1{UUID}", "has a token that is none"),
    (CellMessageHeaderKeys.TOKEN, UUID[1:], "has a token that is none"),
    (CellMessageHeaderKeys.TOKEN, "server", "has a token that is none"),
    (StreamHeaderKey.SIZE, 64 * 2**20, ""),
    (StreamHeaderKey.SIZE, 64 * 2**20 + 1, "would reserve 67108865 bytes"),
])  # fmt: skip
def test_dropped_are_letters_moved_from_a_name_to_its_token_and_streams_that_reserve_memory(
    header, value, why, caplog
):
    message = of_nih(**{header: value})
    assert (ServerRequests().drop(message) is not None) == bool(why)
    assert why in caplog.text
    results = of_nih(**{header: value, StreamHeaderKey.PAYLOAD_ENCODING: Encoding.FOBS})
    assert (ServerRequests().drop(results) is not None) == ("token" in why)


@pytest.mark.parametrize("kind", [MessageType.REQ, MessageType.REPLY])
def test_a_site_may_answer_what_the_server_asks_of_its_cell(kind):
    message = of_nih(**{
        MessageHeaderKey.CHANNEL: "_net_manager", MessageHeaderKey.TOPIC: "peers",
        MessageHeaderKey.MSG_TYPE: kind,
    })  # fmt: skip
    assert (ServerRequests().drop(message) is None) == (kind == MessageType.REPLY)


def of_nih(**headers):
    """A message of site nih to the server."""
    message = Message({
        MessageHeaderKey.ORIGIN: "nih", MessageHeaderKey.DESTINATION: "server",
        MessageHeaderKey.CHANNEL: "task", **headers,
    })  # fmt: skip
    message.set_prop(MessagePropKey.ENDPOINT, Endpoint("nih"))
    return message
