"""Locate the model that an evaluation workflow measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.model_locator import ModelLocator
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, load
from surgical_aggregation.checkpoints.manifest import Manifest
from surgical_aggregation.server.models import model_files
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import CONTINUES, MEASURED, MODEL_ROUND

EVALUATED = "evaluated"
"""Name of the model of an evaluation job."""


def model_headers(manifest: Manifest) -> dict[str, Any]:
    """Headers of a task with a model: its round, and what a resumed run continues."""
    continued = manifest.continued
    return {MODEL_ROUND: manifest.round, **({CONTINUES: continued} if continued else {})}


class CheckpointLocator(ModelLocator):
    """Give FLARE's GlobalModelEval one model of the run, and its tasks the model's headers.

    Runs on the server. Every task gets `model_headers`, and the context `MEASURED`. If a resumed
    run has no round left, such a task is the first that a site gets, and it restores its state.

    Args:
        model: "best" (default) or "last", as written by `CheckpointPersistor`. In FLARE's results
            the name has the prefix "SRV_".

    Raises:
        ValueError: `model` is none of these.
    """

    models: tuple[str, ...] = ("best", "last")

    def __init__(self, model: str = "best"):
        super().__init__()
        if model not in self.models:
            raise ValueError(f"model must be one of {self.models}; got {model!r}.")
        self.model = model
        self._headers: dict[str, Any] = {}

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint."""
        return model_files.checkpoint_folders(fl_ctx)[0] / f"{self.model}.npz"

    def checkpoint(self, fl_ctx: FLContext) -> Checkpoint:
        """The model."""
        return load(self.path(fl_ctx))

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The model's name, or an empty list and a warning if it has not been written."""
        if self.path(fl_ctx).is_file():
            return [self.model]
        self.log_warning(fl_ctx, f"there is no {self.model} model to evaluate")
        return []

    def locate_model(self, model_name: str, fl_ctx: FLContext) -> DXO:
        """The model's variables as a DXO; the manifest stays on the server."""
        model = self.checkpoint(fl_ctx)
        self._headers = model_headers(model.manifest)
        measured = {
            "round": model.manifest.round,
            "has_head": bool(wire.classes_of(model.variables)),
            "features": model.manifest.get("head_features"),
        }
        fl_ctx.set_prop(MEASURED, measured, private=True, sticky=True)
        return DXO(DataKind.WEIGHTS, data=model.variables)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Add the headers to a task that will be sent with this model."""
        super().handle_event(event_type, fl_ctx)
        if event_type == AppEventType.SEND_MODEL_FOR_VALIDATION:
            if fl_ctx.get_prop(AppConstants.MODEL_OWNER) == f"SRV_{self.model}":
                task = fl_ctx.get_prop(AppConstants.MODEL_TO_VALIDATE)
                for name, value in self._headers.items():
                    task.set_header(name, value)


class EvaluatedModelLocator(CheckpointLocator):
    """Give FLARE's GlobalModelEval the best model of an earlier job, or a checkpoint.

    Runs on the server. Ends the run with the reason if the model is missing or has no head.

    Args:
        file: Path of the checkpoint on the server, see `named_by_job`. Default None.
        job: Id of an earlier job at this server, whose best model is measured; takes precedence
            over `file`. Default "": none.
    """

    models = (EVALUATED,)

    def __init__(self, file: str | None = None, job: str = ""):
        super().__init__(EVALUATED)
        self.file = file
        self.job = job

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint.

        Raises:
            CheckpointError: None is configured, the job may not name it, or `job` left none.
        """
        if self.job:
            return model_files.checkpoint_of(self.job, model_files.BEST_FILE, fl_ctx)
        if not self.file:
            raise CheckpointError(
                "an evaluation needs a model; none is configured. Give the id of an earlier job at "
                "this server, or the path of a checkpoint there, in the job's server configuration."
            )
        return model_files.named_by_job(self.file, fl_ctx)

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The model's name, or an empty list if the run has been ended for lack of a model."""
        try:
            path = self.path(fl_ctx)
            checkpoint = load(path)
            if not (classes := wire.classes_of(checkpoint.variables)):
                raise CheckpointError(
                    f"{str(path)!r} has no columns, so there is nothing to measure. It is an "
                    "initial body, or its sites kept their heads: use a model with a head."
                )
            if checkpoint.manifest.has_personal_body:
                raise CheckpointError(
                    f"{str(path)!r} is no site's model: with strategy "
                    f"{checkpoint.manifest.get('strategy')!r} each site keeps a part of its own. "
                    "Use the test of the training job."
                )
        except ValueError as error:
            self.system_panic(str(error), fl_ctx)
            return []
        facts = checkpoint.manifest
        of_job = f"{facts.round} rounds of job {facts.get('job', 'none')}"
        self.log_info(fl_ctx, f"measuring {path}: {len(classes)} classes, {of_job}")
        return [self.model]
