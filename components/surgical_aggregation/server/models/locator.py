"""Finds the best or the last global model for an evaluation workflow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.model_locator import ModelLocator
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.checkpoints import continuation
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.models.global_model import CONTINUES, MODEL_ROUND
from surgical_aggregation.server.models.persistor import checkpoint_folders
from surgical_aggregation.wire import variables as wire

MODEL_HAS_HEAD = "surgical.model_has_head"
"""Private sticky property on the server: whether the model that is measured has a column."""


class OneModelLocator(ModelLocator, ABC):
    """Give FLARE's GlobalModelEval one checkpoint, and the sites what belongs to it.

    Runs on the server. Every task gets the model's round (`MODEL_ROUND`), which is a private sticky
    property of that name as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self._headers: dict[str, Any] = {}

    @property
    @abstractmethod
    def name(self) -> str:
        """What the model is called; FLARE's results put "SRV_" before it."""

    @abstractmethod
    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint."""

    def headers(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Headers of the tasks with a model, by its manifest."""
        return {MODEL_ROUND: manifest.get("round", 0)}

    def locate_model(self, model_name: str, fl_ctx: FLContext) -> DXO:
        """The model's variables; the manifest stays on the server."""
        checkpoint = load(self.path(fl_ctx))
        self._headers = self.headers(checkpoint.manifest)
        round_ = self._headers[MODEL_ROUND]
        fl_ctx.set_prop(MODEL_ROUND, round_, private=True, sticky=True)
        has_head = bool(wire.classes_of(checkpoint.variables))
        fl_ctx.set_prop(MODEL_HAS_HEAD, has_head, private=True, sticky=True)
        return DXO(DataKind.WEIGHTS, data=checkpoint.variables)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Put the headers on a task that is about to be sent with this model."""
        super().handle_event(event_type, fl_ctx)
        if event_type == AppEventType.SEND_MODEL_FOR_VALIDATION:
            if fl_ctx.get_prop(AppConstants.MODEL_OWNER) == f"SRV_{self.name}":
                task = fl_ctx.get_prop(AppConstants.MODEL_TO_VALIDATE)
                for name, value in self._headers.items():
                    task.set_header(name, value)


class CheckpointLocator(OneModelLocator):
    """Give FLARE's GlobalModelEval one of the checkpoints that `CheckpointPersistor` writes.

    Runs on the server. In a continued run its tasks say so (`CONTINUES`), for where no round was
    left to make they are the first that a site gets, and it takes up its state.

    Args:
        model: "best" (default) or "last".
    """

    def __init__(self, model: str = "best"):
        super().__init__()
        if model not in ("best", "last"):
            raise ValueError(f"model must be 'best' or 'last'; got {model!r}.")
        self.model = model

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model

    def headers(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Also what the run continues."""
        continued = continuation.continued(manifest)
        return super().headers(manifest) | ({CONTINUES: continued} if continued else {})

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint, which may not have been written."""
        return checkpoint_folders(fl_ctx)[0] / f"{self.model}.npz"

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The model's name, or nothing where it has not been written (said in the log)."""
        if not self.path(fl_ctx).is_file():
            self.log_warning(fl_ctx, f"there is no {self.model} model to evaluate")
            return []
        return [self.name]
