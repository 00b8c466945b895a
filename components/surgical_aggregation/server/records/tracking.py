"""Write the sites' metrics as TensorBoard or MLflow curves at the server."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from nvflare.apis.analytix import AnalyticsDataType
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.utils.analytix_utils import create_analytic_dxo
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.widgets.streaming import AnalyticsReceiver

from surgical_aggregation.server.access.job_sites import site_of
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.wire import flare_internals, headers, results

_DEFAULT = "tensorboard"

TRACKED = ("bce", "auroc", "train_loss")
"""First parts of the names of tracked metrics."""


class Tracking(FLComponent):
    """Write the sites' metrics with FLARE's receivers.

    Runs on the server. Reads accepted results, whose sites are authenticated; metrics that FLARE
    streams carry the name that a client uses for itself. A run whose metrics cannot be written ends
    with the reason before training. Tags:

        bce, auroc                    step r: the model that round r starts from, on the validation
        bce/<class>, auroc/<class>    split; including the final model
        train_loss                    step r: training loss of round r
        test/bce, test/auroc/<class>  the tested model, on the test split; step: its round
        average/bce, refit/bce, ...   a candidate (see `candidates`), on the validation split

    The server's curves are means over the sites that measured a value; there are none for tests.

    Args:
        tracking: "tensorboard" (default): TBAnalyticsReceiver, event files in tb_events/<site> of
            the job's workspace; if tensorboard is not installed, a warning. "mlflow":
            MLflowReceiver, one run per site and none for the means, at the server's
            MLFLOW_TRACKING_URI, or if that is not set, in mlflow.db of the job's results. "none":
            no curves.
    """

    def __init__(self, tracking: str = _DEFAULT):
        super().__init__()
        self.tracking = tracking
        self._receiver: AnalyticsReceiver | None = None
        self._sites: dict[str, dict[str, float]] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Make the receiver when the run starts; write metrics and their means."""
        final = fl_ctx.get_prop(FLContextKey.WORKFLOW) == "validate_final"
        round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        measured = fl_ctx.get_prop(headers.MEASURED, {}).get("round")
        if event_type == EventType.START_RUN:
            self._start(fl_ctx)
        if self._receiver is None:
            return
        if event_type == EventType.END_RUN:
            try:
                self._receiver.finalize(fl_ctx)
            except Exception as error:
                self.log_error(fl_ctx, f"the last metrics may be missing: {error}")
        elif event_type in (AppEventType.ROUND_STARTED, EventType.START_WORKFLOW):
            self._sites = {}
        elif event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                self._measured(round_, fl_ctx)
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED:
            self._measured(measured, fl_ctx)
        elif event_type == AppEventType.BEFORE_AGGREGATION:
            self._keep_means(round_, fl_ctx)
        elif event_type == EventType.END_WORKFLOW and final:
            self._keep_means(measured, fl_ctx)

    def _start(self, fl_ctx: FLContext) -> None:
        known = ", ".join((*headers.TRACKERS, headers.NONE))
        if self.tracking not in (*_RECEIVERS, headers.NONE):
            self.system_panic(f"tracking must be one of {known}; got {self.tracking!r}.", fl_ctx)
        elif self.tracking == _DEFAULT and find_spec(self.tracking) is None:
            self.log_warning(fl_ctx, "no curves are written: tensorboard is not installed here")
        elif self.tracking in _RECEIVERS:
            try:
                receiver = _RECEIVERS[self.tracking]()
                receiver.initialize(fl_ctx)
                self._receiver = receiver
            except Exception as error:  # a missing package, FLARE's receiver, or its storage
                self.system_panic(
                    f"tracking = {self.tracking!r} cannot start at the server: {error}. Fix this "
                    f"(pip install {self.tracking}), or set tracking to another of {known}.",
                    fl_ctx,
                )

    def _measured(self, step: int, fl_ctx: FLContext) -> None:
        measured, site = results.current(fl_ctx).metrics, site_of(fl_ctx)
        values = {n: value for n, value in measured.items() if n.partition("/")[0] in TRACKED}
        self._sites[site] = values
        prefix = self._prefix(fl_ctx)
        self._keep(site, {f"{prefix}{name}": values[name] for name in values}, step, fl_ctx)

    def _prefix(self, fl_ctx: FLContext) -> str:
        if fl_ctx.get_prop(FLContextKey.TASK_NAME) == "test":
            return "test/"
        if not fl_ctx.get_prop(AppConstants.GLOBAL_MODEL):
            return ""
        made = GlobalModel.current(fl_ctx).manifest.get(headers.CANDIDATE)
        return f"{made}/" if made else ""

    def _keep_means(self, step: int, fl_ctx: FLContext) -> None:
        by_name: dict[str, list[float]] = {}
        for _, values in sorted(self._sites.items()):
            for name, value in values.items():
                by_name.setdefault(name, []).append(value)
        if self.tracking != "mlflow":  # which has runs of clients only
            means = {name: float(np.mean(values)) for name, values in by_name.items()}
            self._keep(fl_ctx.get_identity_name(), means, step, fl_ctx)

    def _keep(self, whose: str, values: Mapping[str, float], step: int, fl_ctx: FLContext) -> None:
        if not values or self._receiver is None:
            return
        named = {self._tag(name): value for name, value in values.items()}
        sent: list[tuple[str, object, AnalyticsDataType]] = [
            ("metrics", named, AnalyticsDataType.SCALARS)
        ]
        if self.tracking == "tensorboard":  # else FLARE makes a run of every curve
            sent = [(tag, value, AnalyticsDataType.SCALAR) for tag, value in named.items()]
        try:
            for tag, value, kind in sent:
                dxo = create_analytic_dxo(tag, value, kind, global_step=step)
                self._receiver.save(fl_ctx, dxo.to_shareable(), whose)
        except Exception as error:  # do not end the run for a curve
            self.log_error(fl_ctx, f"the metrics of {whose} are not written: {error}")

    def _tag(self, name: str) -> str:
        """A name that the tracker accepts: MLflow refuses all values for one invalid name."""
        return re.sub(r"[^\w\-. :/]", "_", name) if self.tracking == "mlflow" else name


def _tensorboard() -> AnalyticsReceiver:
    flare_internals.tensorboard_without_tensorflow()
    return import_module("nvflare.app_opt.tracking.tb.tb_receiver").TBAnalyticsReceiver()


def _mlflow() -> AnalyticsReceiver:
    receiver = import_module("nvflare.app_opt.tracking.mlflow.mlflow_receiver").MLflowReceiver
    names = {"experiment_name": "surgical-aggregation", "experiment_tags": {}, "run_tags": {}}
    return receiver(tracking_uri=os.environ.get("MLFLOW_TRACKING_URI"), kw_args=names)


_RECEIVERS = {"tensorboard": _tensorboard, "mlflow": _mlflow}
