"""Finds the best or the last global model for an evaluation workflow."""

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.model_locator import ModelLocator

from surgical_aggregation.checkpoint import load
from surgical_aggregation.persistor import checkpoint_folders


class CheckpointLocator(ModelLocator):
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

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The model's name, or nothing where it has not been written (said in the log)."""
        if not self._path(fl_ctx).is_file():
            self.log_warning(fl_ctx, f"there is no {self.model} model to evaluate")
            return []
        return [self.model]

    def locate_model(self, model_name: str, fl_ctx: FLContext) -> DXO:
        """The model's variables; the manifest stays on the server."""
        return DXO(DataKind.WEIGHTS, data=load(self._path(fl_ctx)).variables)

    def _path(self, fl_ctx: FLContext):
        return checkpoint_folders(fl_ctx)[0] / f"{self.model}.npz"
