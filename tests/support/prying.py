"""A hospital's colleague: a component in the service of a site that asks another site's service."""

import json
import threading
import time
from pathlib import Path

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.fuel.f3.cellnet.defs import CellChannel
from nvflare.fuel.hci.server.constants import ConnProps
from nvflare.private.admin_defs import Message
from nvflare.private.defs import RequestHeader, SysCommandTopic, new_cell_message

ASK, ANSWER = "ask.json", "answer.json"


class Prying(FLComponent):
    """Runs a shell command at another site whenever its kit has a file that asks for it."""

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
            asked = json.loads((kit / ASK).read_text())
            (kit / ASK).unlink()
            (kit / "answer.part").write_text(json.dumps(self._ask(cell, **asked)))
            (kit / "answer.part").rename(kit / ANSWER)

    def _ask(self, cell, site, command, headers):
        request = Message(topic=SysCommandTopic.SHELL, body=command)
        for name, value in headers.items():
            request.set_header(name, value)
        reply = cell.send_request(
            channel=CellChannel.CLIENT_MAIN, target=site, topic=SysCommandTopic.SHELL,
            request=new_cell_message({}, request), timeout=10.0,
        )  # fmt: skip
        return {"body": str(getattr(reply.payload, "body", None)), "headers": str(reply.headers)}


def forged(user, organisation):
    """Headers of a request as another's admin makes it."""
    return {
        RequestHeader.REQUIRE_AUTHZ: "true", RequestHeader.ADMIN_COMMAND: "cat",
        ConnProps.USER_NAME: user, ConnProps.USER_ORG: organisation,
        ConnProps.USER_ROLE: "org_admin",
    }  # fmt: skip


def ask(kit, site, command, headers=None):
    """What another site answers to a request of the site of this kit."""
    (kit / ANSWER).unlink(missing_ok=True)
    (kit / "ask.part").write_text(
        json.dumps({"site": site, "command": command, "headers": headers or {}})
    )
    (kit / "ask.part").rename(kit / ASK)
    deadline = time.monotonic() + 30
    while not (kit / ANSWER).is_file():
        assert time.monotonic() < deadline, f"{kit.name} asked {site} in vain"
        time.sleep(0.1)
    return json.loads((kit / ANSWER).read_text())["body"]
