"""Sites that lie: one passes for another, one answers what would end the job for all."""

import json
import re
import time

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import make_reply
from nvflare.app_common.app_constant import AppConstants

from cxr_study.jobs import job_folder
from surgical_aggregation.site.executor import KerasExecutor
from surgical_aggregation.wire.headers import CLASSES

ANSWERS = {
    0: make_reply(ReturnCode.UNSAFE_JOB),
    1: make_reply(ReturnCode.TASK_UNKNOWN),
    2: make_reply(ReturnCode.RUN_MISMATCH),
    "validate": DXO(DataKind.METRICS, data={"bce": "low"}).to_shareable(),
    "test": DXO(DataKind.METRICS, data={("bce", "Edema"): 0.5}).to_shareable(),
}
"""Round, or task of an evaluation -> what the odd site answers."""


class Impostor(FLComponent):
    """From the start of the run on, a site calls itself by another's name.

    Args:
        site: The site it runs at.
        claims: Site -> whom it passes for, and the classes that it declares.
    """

    def __init__(self, site: str, claims: dict):
        super().__init__()
        self.site = site
        self.claims = claims

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.START_RUN and self.site in self.claims:
            victim, classes = self.claims[self.site]
            fl_ctx.get_engine().fl_ctx_mgr.identity_name = victim
            fl_ctx.set_prop(CLASSES, list(classes), private=False, sticky=True)


SLOW = 4.0
"""Seconds that the slow site takes for the first round."""


class OddExecutor(KerasExecutor):
    """The job's executor, but one site answers `ANSWERS`, and one is slow in the first round.

    Args:
        site: The site it runs at.
        odd: Name of the one.
        slow: Name of the other.
        settings: The job's own.
    """

    def __init__(self, site, odd, slow, **settings):
        super().__init__(**settings)
        self.site = site
        self.odd = odd
        self.slow = slow

    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        reply = super().execute(task_name, shareable, fl_ctx, abort_signal)
        round_ = shareable.get_header(AppConstants.CURRENT_ROUND)
        if self.site == self.slow and round_ == 0:
            time.sleep(SLOW)
        return reply if self.site != self.odd else ANSWERS[task_name if round_ is None else round_]


def impostor(claims):
    """The component of a client's configuration; see `Impostor`."""
    args = f'site = "{{SITE_NAME}}", claims = {json.dumps(claims)}'
    return f'{{ id = "impostor", path = "lying.Impostor", args {{ {args} }} }}'


def lie(job, *, claims=None, odd="", slow="", permitted=None):
    """Change a job: who passes for whom, answers oddly or late, and what sites are permitted.

    Args:
        job: The job folder.
        claims: See `Impostor`.
        odd: See `OddExecutor`.
        slow: Likewise.
        permitted: Site -> classes that it may hold; None: what it declares.
    """
    client, server = job / job_folder.CLIENT_CONFIG, job / job_folder.SERVER_CONFIG
    at_site = 'site = "{SITE_NAME}"'
    _replace(client, r"components = \[", f"components = [ {impostor(claims or {})}")
    executor = f'path = "lying.OddExecutor", args {{ {at_site}, odd = "{odd}", slow = "{slow}",'
    _replace(
        client, r'path = "surgical_aggregation\.site\.executor\.KerasExecutor"\s+args \{', executor
    )
    if permitted is not None:
        for name in ("SelectHead", "CheckResult"):
            path = f'path = "surgical_aggregation.server.access.class_filters.{name}"'
            table = f"args {{ permitted = {json.dumps(permitted)} }}"
            _replace(server, re.escape(path), f"{path}, {table}")


def _replace(path, pattern, new):
    text, number = re.subn(pattern, lambda _: new, path.read_text(encoding="utf-8"))
    assert number == 1, (path, pattern)
    path.write_text(text, encoding="utf-8")
