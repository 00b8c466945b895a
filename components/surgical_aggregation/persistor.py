"""The persistor: last and best global model on the server's disk after every round."""

from __future__ import annotations

from pathlib import Path

from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.model import ModelLearnable, ModelLearnableKey
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation import wire
from surgical_aggregation.best_model import BEST
from surgical_aggregation.checkpoint import Checkpoint, CheckpointError, digest, load, save
from surgical_aggregation.global_model import GlobalModel, to_learnable
from surgical_aggregation.initial_body import InitialBody

LAST_FILE = "last.npz"
BEST_FILE = "best.npz"


def checkpoint_folders(fl_ctx: FLContext) -> tuple[Path, Path]:
    """Folders that hold a job's checkpoints on the server.

    Returns:
        `models/` in the job's own workspace, which is downloaded with the job, and
        `checkpoints/<job id>/` in the server's, which outlives the job's.
    """
    workspace = fl_ctx.get_engine().get_workspace()
    job = fl_ctx.get_job_id()
    return (
        Path(workspace.get_run_dir(job)) / "models",
        Path(workspace.get_root_dir()) / "checkpoints" / job,
    )


class CheckpointPersistor(ModelPersistor):
    """Keep the last and the best global model on disk, each with its manifest.

    Runs on the server and needs NumPy only. Starts from the checkpoint that the `InitialBody`
    component names. Writes last.npz after every round and best.npz whenever a better model is
    announced (GLOBAL_BEST_MODEL_AVAILABLE), atomically, to both `checkpoint_folders`.

    Args:
        initial_body_id: Id of the `InitialBody` component. Default "initial_body".
    """

    def __init__(self, initial_body_id: str = "initial_body"):
        super().__init__()
        self.initial_body_id = initial_body_id

    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        """Read the checkpoint to start from.

        An unusable file ends the run with the reason before any site trains.
        """
        try:
            checkpoint = load(self._initial_body(fl_ctx).path())
            body, columns = wire.split(checkpoint.variables)
            if "head_features" not in checkpoint.manifest:
                raise CheckpointError("the initial checkpoint's manifest lacks 'head_features'.")
        except ValueError as error:
            self.system_panic(str(error), fl_ctx)
            return ModelLearnable()
        manifest = {**checkpoint.manifest, "job": fl_ctx.get_job_id()}
        manifest.pop("best", None)  # was the best of another run
        manifest.setdefault("initial_body_sha256", digest(body))
        self.log_info(
            fl_ctx,
            f"start from {len(body)} body variables and the columns of {len(columns)} classes; "
            f"sha256 of the initial body {manifest['initial_body_sha256'][:12]}",
        )
        return to_learnable(GlobalModel(body, columns, manifest))

    def _initial_body(self, fl_ctx: FLContext) -> InitialBody:
        component = fl_ctx.get_engine().get_component(self.initial_body_id)
        if not isinstance(component, InitialBody):
            raise CheckpointError(
                f"the server's configuration needs an InitialBody component with id "
                f"{self.initial_body_id!r}; got {type(component).__name__}."
            )
        return component

    def save_model(self, model: ModelLearnable, fl_ctx: FLContext) -> None:
        """Write the last model."""
        self._write(LAST_FILE, model, {}, fl_ctx)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Write the best model when one is announced."""
        super().handle_event(event_type, fl_ctx)
        if event_type == AppEventType.GLOBAL_BEST_MODEL_AVAILABLE:
            model = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
            self._write(BEST_FILE, model, {"best": fl_ctx.get_prop(BEST)}, fl_ctx)

    def _write(self, name: str, model: ModelLearnable, facts: dict, fl_ctx: FLContext) -> None:
        manifest = {**model[ModelLearnableKey.META], **facts}
        checkpoint = Checkpoint(model[ModelLearnableKey.WEIGHTS], manifest)
        for folder in checkpoint_folders(fl_ctx):
            save(checkpoint, folder / name)
