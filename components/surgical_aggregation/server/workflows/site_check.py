"""The first workflow of a job: whether its sites can take part, before anything is trained."""

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
"""Keys of a model's manifest that the sites are told."""

_MODELS = 12
"""Models, besides a round's results, for which a server needs room: the last one with an average
and an optimizer's two moments, the best one and two candidates, and as many while they are written.
"""


@dataclass(eq=False)
class SiteCheck(AskingController):
    """Ask the sites of a job whether they can take part, before anything is trained.

    Runs on the server. A site is asked for its free disk and its certificate's days, and told names
    and shapes of the body's variables, to compare them with its own network: one round trip. No
    value, no column and no class goes out, so the task needs no guard. A site that cannot take part
    does no further task, and nothing more of it is taken; each reason is at the site in its notes,
    and here in log and record:

        what it declares does not count (see `declaration_fault`: name, versions), or it may not
        train it; its network is another; its disk is too small; its files cannot be used

    Where fewer than `min_clients` can take part, the run ends with the reasons of all sites; also
    where the server's disk has no room for a round.

    Args:
        model_id: Id of what has the path of the model to start from: the persistor of a training
            job, or an evaluation's model locator. Default "persistor".
        min_clients: Sites that must be able to take part. Default 0: all of the job.
        wait_seconds: Seconds to wait for the others then. Default 600.
        permitted: See `PermittedFilter`; the same table as there. Default None.
        check_only: End the job well after the check. Default False.
    """

    guards = frozenset()
    hears_all = True

    model_id: str = "persistor"
    min_clients: int = 0
    wait_seconds: int = 600
    permitted: job_sites.Table | None = None
    check_only: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._trains = True

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Ask all sites, and end the run where too few can take part."""
        if abort_signal.triggered:
            return
        model = fl_ctx.get_engine().get_component(self.model_id)
        self._trains = isinstance(model, ModelPersistor)
        try:
            start = load(model.path(fl_ctx))
            self._check_room(start, fl_ctx)
        except ValueError as error:
            self.system_panic(str(error), fl_ctx)
            return
        task = Task(headers.CHECK_TASK, _question(start), before_task_sent_cb=self._tell)
        self.ask(task, fl_ctx)
        versions = {SERVER_SITE_NAME: installed_versions(), **job_sites.versions_by_site(fl_ctx)}
        if differ := differences(versions):
            self.log_warning(fl_ctx, f"versions differ: {'; '.join(differ)}")
        if self.check_only:
            flare_internals.end_after_this_workflow(fl_ctx)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing is left to stop."""

    def _check_room(self, start: Checkpoint, fl_ctx: FLContext) -> None:
        engine = fl_ctx.get_engine()
        free = shutil.disk_usage(engine.get_workspace().get_root_dir()).free
        sites = len(engine.get_clients())
        size = sum(value.nbytes for value in start.variables.values())
        if self._trains and free < (need := (sites + _MODELS) * size):
            raise CheckpointError(
                f"the server's disk needs {need / 1e6:,.1f} MB for the results of {sites} sites "
                f"and its models; {free / 1e6:,.1f} MB are free. Make room there."
            )

    def _tell(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        """Tell a site alone what keeps it out: public properties go to whom the context is about.

        The task's data are one object for all sites.
        """
        if reason := job_sites.declaration_fault(fl_ctx, asking=True) or self._unpermitted(fl_ctx):
            fl_ctx.set_prop(headers.FAULT, reason, private=False, sticky=False)

    def _unpermitted(self, fl_ctx: FLContext) -> str | None:
        return job_sites.unpermitted(fl_ctx, self.permitted) if self._trains else None

    def _reason(self, client_task: ClientTask, fl_ctx: FLContext) -> str | None:
        told = _told(client_task.result)
        cannot = told.pop(headers.CANNOT)
        reason = job_sites.declaration_fault(fl_ctx) or self._unpermitted(fl_ctx)
        reason = reason or super()._reason(client_task, fl_ctx) or cannot
        site, says = client_task.client.name, job_sites.declaration(fl_ctx)
        if reason:
            out = {**fl_ctx.get_prop(headers.LEFT_OUT, {}), site: reason}
            fl_ctx.set_prop(headers.LEFT_OUT, out, private=True, sticky=True)
        declared = {
            "site": site,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "versions": says.versions,
            "classes": [one_line(name) for name in says.classes],
            **told,
            "reason": reason,
        }
        self.fire_event_with_data(headers.SITE_CHECKED, fl_ctx, headers.DECLARED, declared)
        return reason


def _question(start: Checkpoint) -> Shareable:
    """What the sites are told of the model that they would start from."""
    body, _ = wire.split(start.variables)
    # of bytes are ciphertexts, whose shapes are others
    shapes = {path: None if v.dtype == np.uint8 else list(v.shape) for path, v in body.items()}
    network = {name: start.manifest[name] for name in NETWORK_FACTS if name in start.manifest}
    data = {headers.BODY_SHAPES: shapes, headers.NETWORK: network}
    return DXO(DataKind.APP_DEFINED, data=data).to_shareable()


def _told(result: Shareable) -> dict[str, Any]:
    """What a site answers, as far as it can be used; its words are safe for logs and terminals."""
    try:
        data = dict(from_shareable(result).data)
    except (TypeError, ValueError):  # an answer without any; its return code says why
        data = {}
    kinds = {headers.FREE_DISK: int, headers.CERTIFICATE_DAYS: int, headers.CANNOT: str}
    told = {n: data[n] if isinstance(data.get(n), kind) else None for n, kind in kinds.items()}
    return {name: one_line(said) if isinstance(said, str) else said for name, said in told.items()}
