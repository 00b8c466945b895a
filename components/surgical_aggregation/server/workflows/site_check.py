"""The first workflow of a job: check that its sites can participate, before any training."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_def import SERVER_SITE_NAME
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.model_persistor import ModelPersistor

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, load
from surgical_aggregation.server.access import job_sites
from surgical_aggregation.server.workflows.collecting_controller import AskingController
from surgical_aggregation.wire import flare_internals, headers
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.untrusted_text import one_line
from surgical_aggregation.wire.versions import differences, installed_versions

NETWORK_FACTS = ("backbone", "image_size", "hidden")
"""Keys of the model's manifest that are sent to the sites."""

_MODELS = 12
"""Models, besides a round's results, that the server's disk must hold: the last one with an average
and the optimizer's two moments, the best one, two candidates, and a temporary file of each."""


@dataclass(eq=False)
class SiteCheck(AskingController):
    """Check, in one round trip, that the sites of a job can participate.

    Runs on the server, before any training. Each site receives names and shapes of the body's
    variables to compare with its own network, and replies with its free disk space and the days
    until its certificate expires. No value, column or class is sent, so the task needs no guard.

    A site that cannot participate carries out no further task, and its results are refused. The
    reason is in the site's notes, and in the server's log and record. Reasons are

        an invalid declaration (see `declaration_fault`: name, versions), a class that it is not
        permitted to train, another network, too little disk space, unusable files or data

    The run ends if fewer than `min_clients` sites can participate, with the reason of each, or if
    the server's disk cannot hold a round.

    Args:
        model_id: Id of the component that has the path of the start model: the persistor of a
            training job, or the model locator of an evaluation. Default "persistor".
        min_clients: Number of sites that must be able to participate. Default 0: all of the job.
        wait_seconds: Grace period in seconds for the other sites. Default 600.
        permitted: The table of `PermittedFilter`. Default None.
        check_only: Whether to end the job successfully after the check. Default False.
    """

    guards = frozenset()
    wait_for_all = True

    model_id: str = "persistor"
    min_clients: int = 0
    wait_seconds: int = 600
    permitted: job_sites.Table | None = None
    check_only: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._trains = True

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Check all sites, and end the run if too few can participate."""
        if abort_signal.triggered:
            return
        model = fl_ctx.get_engine().get_component(self.model_id)
        self._trains = isinstance(model, ModelPersistor)
        try:
            if model is None:
                raise ValueError(f"the job has no component {self.model_id!r}. Check model_id.")
            start = load(model.path(fl_ctx))
            self._check_room(start, fl_ctx)
        except ValueError as error:
            self.system_panic(str(error), fl_ctx)
            return
        task = Task(
            headers.CHECK_TASK, _request(start, self._trains), before_task_sent_cb=self._add_fault
        )
        self.ask(task, fl_ctx)
        versions = {SERVER_SITE_NAME: installed_versions(), **job_sites.versions_by_site(fl_ctx)}
        if differ := differences(versions):
            self.log_warning(fl_ctx, f"versions differ: {'; '.join(differ)}")
        if self.check_only:
            flare_internals.end_after_this_workflow(fl_ctx)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing to stop."""

    def _check_room(self, start: Checkpoint, fl_ctx: FLContext) -> None:
        engine = fl_ctx.get_engine()
        free = shutil.disk_usage(engine.get_workspace().get_root_dir()).free
        sites = len(engine.get_clients())
        size = sum(value.nbytes for value in start.variables.values())
        if self._trains and free < (need := (sites + _MODELS) * size):
            raise CheckpointError(
                f"the server needs {need / 1e6:,.1f} MB of disk space for the results of {sites} "
                f"sites and its models; {free / 1e6:,.1f} MB are free. Free some space there."
            )

    def _add_fault(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        """Send a site the server's reason against it, if there is one.

        As a public property of the context, which goes to this site alone; the task's data are one
        object for all sites.
        """
        if reason := job_sites.declaration_fault(fl_ctx) or self._unpermitted(fl_ctx):
            fl_ctx.set_prop(headers.FAULT, reason, private=False, sticky=False)

    def _unpermitted(self, fl_ctx: FLContext) -> str | None:
        return job_sites.unpermitted(fl_ctx, self.permitted) if self._trains else None

    def _reason(self, client_task: ClientTask, fl_ctx: FLContext) -> str | None:
        reply = _parsed_reply(client_task.result)
        cannot = reply.pop(headers.CANNOT)
        reason = job_sites.declaration_fault(fl_ctx) or self._unpermitted(fl_ctx)
        reason = one_line(reason or super()._reason(client_task, fl_ctx) or cannot or "") or None
        site, own = client_task.client.name, job_sites.declaration(fl_ctx)
        if reason:
            out = {**fl_ctx.get_prop(headers.LEFT_OUT, {}), site: reason}
            fl_ctx.set_prop(headers.LEFT_OUT, out, private=True, sticky=True)
        declared = {
            "site": site,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "versions": own.versions,
            "classes": [one_line(name) for name in own.classes],
            **reply,
            "reason": reason,
        }
        self.fire_event_with_data(headers.SITE_CHECKED, fl_ctx, headers.DECLARED, declared)
        return reason


def _request(start: Checkpoint, trains: bool) -> Shareable:
    """Names and shapes of the start model's body, its network facts, whether it is trained."""
    body, _ = wire.split(start.variables)
    # bytes are ciphertexts, whose shape is not the variable's
    shapes = {path: None if v.dtype == np.uint8 else list(v.shape) for path, v in body.items()}
    network = {name: start.manifest[name] for name in NETWORK_FACTS if name in start.manifest}
    data = {headers.BODY_SHAPES: shapes, headers.NETWORK: network, headers.TRAINS: trains}
    return DXO(DataKind.APP_DEFINED, data=data).to_shareable()


def _parsed_reply(result: Shareable) -> dict[str, Any]:
    """The usable values of a site's reply, else None; texts are safe for logs and terminals."""
    try:
        data = dict(from_shareable(result).data)
    except (TypeError, ValueError):  # a reply without data, whose return code has the cause
        data = {}
    kinds = {headers.FREE_DISK: int, headers.CERTIFICATE_DAYS: int, headers.CANNOT: str}
    reply = {n: data[n] if isinstance(data.get(n), kind) else None for n, kind in kinds.items()}
    return {name: one_line(v) if isinstance(v, str) else v for name, v in reply.items()}
