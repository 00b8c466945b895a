"""Store the sites' feature statistics of the best model in its manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.checkpoints.checkpoint import CheckpointError, load
from surgical_aggregation.server.access.job_sites import site_of
from surgical_aggregation.server.models import model_files
from surgical_aggregation.wire import results


class BestModelFeatures(FLComponent):
    """Write the sites' feature statistics into the manifest of the best model.

    Runs on the server. With them, users of the model can detect images that differ from the test
    images of every site; see `feature_statistics`. The manifest has "features": {site: statistics},
    for the sites whose policy permits it.

    Args:
        workflow: Id of the workflow that tests the best model. Default "test_best".
    """

    def __init__(self, workflow: str = "test_best"):
        super().__init__()
        self.workflow = workflow
        self._features: dict[str, Any] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect while the best model is tested; write when that ends."""
        if fl_ctx.get_prop(FLContextKey.WORKFLOW) != self.workflow:
            return
        if event_type == AppEventType.VALIDATION_RESULT_RECEIVED:
            if features := results.current(fl_ctx).features:
                self._features[site_of(fl_ctx)] = features
        elif event_type == EventType.END_WORKFLOW and self._features:
            try:
                best = load(model_files.checkpoint_folders(fl_ctx)[0] / model_files.BEST_FILE)
                manifest = best.manifest.with_facts(features=dict(sorted(self._features.items())))
                best = replace(best, manifest=manifest)
                model_files.save_to_job(best, model_files.BEST_FILE, fl_ctx)
            except CheckpointError as error:  # the model is usable without them
                self.log_warning(fl_ctx, f"the best model has no statistics of features: {error}")
