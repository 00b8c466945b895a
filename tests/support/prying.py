"""A hospital's colleague: a component in the service of a site that asks other processes."""

import json
import threading
import time
from pathlib import Path

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import (
    FedEventHeader,
    FLContextKey,
    ReservedKey,
    ReservedTopic,
    ServerCommandNames,
)
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.fuel.f3.cellnet.core_cell import Message as CellMessage
from nvflare.fuel.f3.cellnet.defs import CellChannel
from nvflare.private.admin_defs import Message
from nvflare.private.defs import CellMessageHeaderKeys, SysCommandTopic, new_cell_message
from nvflare.widgets.fed_event import FED_EVENT_TOPIC

ASK, ANSWER = "ask.json", "answer.json"


class Prying(FLComponent):
    """Sends another process the request that a file in its kit asks for."""

    def __init__(self, kit):
        self.kit = kit

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.SYSTEM_START:
            site = fl_ctx.get_prop(FLContextKey.SITE_OBJ)
            threading.Thread(target=self._serve, args=(site.cell,), daemon=True).start()

    def _serve(self, cell):
        kit = Path(self.kit)
        while True:
            time.sleep(0.2)
            if not (kit / ASK).is_file():
                continue
            kind, target, what, timeout = json.loads((kit / ASK).read_text())
            (kit / ASK).unlink()
            by = cell.core_cell if kind == "manage" else cell
            reply = by.send_request(target=target, timeout=timeout, **REQUESTS[kind](what))
            (kit / "answer.part").write_text(json.dumps(_text(reply.payload)))
            (kit / "answer.part").rename(kit / ANSWER)


def _asked(channel, topic, payload, **headers):
    return {"channel": channel, "topic": topic, "request": new_cell_message(headers, payload)}


def _shell(command):
    """An admin's request to run a command, which does not ask for rights."""
    request = Message(topic=SysCommandTopic.SHELL, body=command)
    return _asked(CellChannel.CLIENT_MAIN, SysCommandTopic.SHELL, request)


def _auxiliary(topic, job, **headers):
    request, peer = Shareable(), FLContext()
    peer.put(FLContextKey.CURRENT_RUN, job, private=False, sticky=False)
    peer.put(ReservedKey.IDENTITY_NAME, "nih", private=False, sticky=False)
    request.set_peer_context(peer)
    request.set_peer_props(peer.get_all_public_props())
    for name, value in headers.items():
        request.set_header(name, value)
    return _asked(CellChannel.AUX_COMMUNICATION, topic, request)


def _heartbeat(job):
    """A request to a job's process, which answers with the public properties of its context."""
    return _auxiliary(ReservedTopic.JOB_HEART_BEAT, job)


def _event(what):
    """An event that a job's process should fire."""
    kind, job = what
    facts = {FedEventHeader.EVENT_TYPE: kind, FedEventHeader.TIMESTAMP: time.time()}
    return _auxiliary(FED_EVENT_TOPIC, job, **facts, **{FedEventHeader.ORIGIN: "nih"})


def _manage(topic):
    """A request of FLARE's network management, by which a cell is inspected or stopped."""
    return {"channel": "_net_manager", "topic": topic, "request": CellMessage()}


def _command(topic):
    """A command to a job's process on the server, as its parent gives."""
    return _asked(CellChannel.SERVER_COMMAND, topic, Shareable())


def _clients(job):
    """A job's process asks for its sites and their tokens."""
    listener, topic = CellChannel.SERVER_PARENT_LISTENER, ServerCommandNames.GET_CLIENTS
    return _asked(listener, topic, {}, **{CellMessageHeaderKeys.JOB_ID: job})


REQUESTS = {
    "command": _command, "clients": _clients,
    "shell": _shell, "heartbeat": _heartbeat, "manage": _manage, "event": _event,
}  # fmt: skip


def _text(payload):
    """An answer as text; None without one."""
    if isinstance(payload, Shareable):
        return str(payload.get_peer_context().get_all_public_props())
    return None if payload is None else str(getattr(payload, "body", payload))


def ask(kit, kind, target, what, timeout=30.0):
    """What another process answers to a request of the site of this kit; None: nothing.

    Args:
        kit: The site's, with the component `Prying`.
        kind: A key of `REQUESTS`.
        target: The process, by its cell.
        what: The command, job or topic.
        timeout: Seconds to wait for the answer.
    """
    (kit / ANSWER).unlink(missing_ok=True)
    (kit / "ask.part").write_text(json.dumps([kind, target, what, timeout]))
    (kit / "ask.part").rename(kit / ASK)
    deadline = time.monotonic() + timeout + 30
    while not (kit / ANSWER).is_file():
        assert time.monotonic() < deadline, f"{kit.name} asked {target} in vain"
        time.sleep(0.1)
    return json.loads((kit / ANSWER).read_text())
