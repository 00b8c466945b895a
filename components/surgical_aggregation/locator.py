"""Finds the best or the last global model for an evaluation workflow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.model_locator import ModelLocator
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.checkpoint import load
from surgical_aggregation.global_model import MODEL_ROUND
from surgical_aggregation.persistor import checkpoint_folders


class OneModelLocator(ModelLocator, ABC):
    """Give FLARE's GlobalModelEval one checkpoint, and the sites its round (`MODEL_ROUND`).

    Runs on the server.
    """

    def __init__(self) -> None:
        super().__init__()
        self._round = 0

    @property
    @abstractmethod
    def name(self) -> str:
        """What the model is called; FLARE's results put "SRV_" before it."""

    @abstractmethod
    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint."""

    def locate_model(self, model_name: str, fl_ctx: FLContext) -> DXO:
        """The model's variables; the manifest stays on the server."""
        checkpoint = load(self.path(fl_ctx))
        self._round = checkpoint.manifest.get("round", 0)
        return DXO(DataKind.WEIGHTS, data=checkpoint.variables)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Put the round into the header of a task that is about to be sent with this model."""
        super().handle_event(event_type, fl_ctx)
        if event_type == AppEventType.SEND_MODEL_FOR_VALIDATION:
            if fl_ctx.get_prop(AppConstants.MODEL_OWNER) == f"SRV_{self.name}":
                task = fl_ctx.get_prop(AppConstants.MODEL_TO_VALIDATE)
                task.set_header(MODEL_ROUND, self._round)


class CheckpointLocator(OneModelLocator):
    """Give FLARE's GlobalModelEval one of the checkpoints that `CheckpointPersistor` writes.

    Runs on the server.

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

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint, which may not have been written."""
        return checkpoint_folders(fl_ctx)[0] / f"{self.model}.npz"

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The model's name, or nothing where it has not been written (said in the log)."""
        if not self.path(fl_ctx).is_file():
            self.log_warning(fl_ctx, f"there is no {self.model} model to evaluate")
            return []
        return [self.name]
