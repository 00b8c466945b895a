"""The persistor: writes the last and the best global model to the server's disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.model import ModelLearnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.aggregation.class_names import shown, twins
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, digest, load
from surgical_aggregation.checkpoints.manifest import made_now
from surgical_aggregation.server.models import model_files
from surgical_aggregation.server.models.global_model import GlobalModel, needs_federated_training
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST, BEST_DROPPED, CANDIDATE, MODEL_VALIDATED

__all__ = ["CheckpointPersistor"]


@dataclass(eq=False)
class CheckpointPersistor(ModelPersistor):
    """Write the last and the best global model to disk, each with its manifest.

    Runs on the server and needs NumPy only. All files are written atomically, to both
    `checkpoint_folders`:

        last.npz                 after every round; its manifest has the record of the best model
        best.npz                 the best model so far
        average.npz, refit.npz   `candidates`, once they are validated

    A new best model (GLOBAL_BEST_MODEL_AVAILABLE) is written together with the next last.npz, just
    before it. If the server is killed, the round in progress is lost; on resume it is repeated, and
    the better model is found again. A candidate becomes best.npz after last.npz has its record; if
    the server is killed in between, it is resumed from the candidate's own file.

    A run that starts from an earlier job's checkpoint resumes its round, classes and history (see
    `Manifest.started_by`), the optimizer's moments, and its best model, provided that best.npz is
    in the checkpoint's folder and matches the record. Under FLARE's FedAvg no run can be resumed,
    and such a run ends with the reason.

    Args:
        continues: Id of an earlier job at this server, whose last model this run starts from;
            several ids: see `checkpoint_of`. Takes precedence over any other start. Default "":
            none.
        file: Path of the checkpoint to start from, see `named_by_job`. Default None: that of the
            `InitialBody` component with id "initial_body".
    """

    continues: str = ""
    file: str | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self._unsaved_best: Checkpoint | None = None
        self._best: dict[str, Any] | None = None
        self._last = ModelLearnable()

    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        """Read the checkpoint to start from; an unusable one ends the run."""
        try:
            path = self.path(fl_ctx)
            checkpoint = load(path)
            body, columns = wire.split(checkpoint.variables)
            if "head_features" not in checkpoint.manifest:
                raise CheckpointError("the initial checkpoint's manifest has no 'head_features'.")
            self._take_over_best(checkpoint, path, fl_ctx)
        except ValueError as error:
            self.system_panic(str(error), fl_ctx)
            return ModelLearnable()
        if "job" in checkpoint.manifest:
            needs_federated_training(self, "resuming a run", fl_ctx)
        manifest = checkpoint.manifest.started_by(fl_ctx.get_job_id())
        if "initial_body_sha256" not in manifest:
            manifest = manifest.with_facts(initial_body_sha256=digest(body))
        self.log_info(
            fl_ctx,
            f"start at round {manifest['round']} from {path}: {len(body)} body variables and the "
            f"columns of {len(columns)} classes; sha256 of the initial body "
            f"{manifest['initial_body_sha256'][:12]}",
        )
        if pair := twins(columns):
            self.log_warning(
                fl_ctx,
                f"the model has columns of {shown(pair[0])} and {shown(pair[1])}, two spellings of "
                "one class; both are kept. Use one spelling at all sites, and remove the other "
                "class from the model",
            )
        self._last = GlobalModel(checkpoint.variables, manifest, checkpoint.moments).to_learnable()
        return self._last

    def _take_over_best(self, start: Checkpoint, path: Path, fl_ctx: FLContext) -> None:
        """Make the earlier run's best model this run's, if its file is there."""
        record = start.manifest.get("best")
        if record is None or "job" not in start.manifest:  # not an earlier job's
            return
        file = path.with_name(model_files.BEST_FILE)
        try:
            of_start = start.manifest.round, start.manifest.get(CANDIDATE)
            best = start if (record["round"], record.get(CANDIDATE)) == of_start else load(file)
            if best.manifest.get("best") != record and CANDIDATE in record:
                best = load(path.with_name(f"{record[CANDIDATE]}.npz"))  # not linked yet
            if best.manifest.get("best") != record:
                raise CheckpointError(f"{str(file)!r} is another model")
        except CheckpointError as error:
            self.log_warning(
                fl_ctx,
                f"the earlier run's best model, of round {record['round']}, is not in the "
                f"checkpoint's folder ({error}); this run selects its best model without it",
            )
            return
        model_files.save_to_job(best, model_files.BEST_FILE, fl_ctx)
        self._best = record
        fl_ctx.set_prop(BEST, record, private=True, sticky=False)

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint to start from.

        Raises:
            CheckpointError: None is configured, or the job may not name it.
        """
        if self.continues:
            return model_files.checkpoint_of(self.continues, model_files.LAST_FILE, fl_ctx)
        if self.file:
            return model_files.named_by_job(self.file, fl_ctx)
        component = fl_ctx.get_engine().get_component("initial_body")
        if not isinstance(component, model_files.InitialBody):
            raise CheckpointError(
                "the server's configuration needs an InitialBody component with id 'initial_body'; "
                f"got {type(component).__name__}."
            )
        return component.path(fl_ctx)

    def save_model(self, model: ModelLearnable, fl_ctx: FLContext) -> None:
        """Write the last model, and the best one if it is new.

        Raises:
            CheckpointError: A file cannot be written; FLARE then ends the run with the reason.
        """
        self._last = model
        if self._unsaved_best is not None:
            model_files.save_to_job(self._unsaved_best, model_files.BEST_FILE, fl_ctx)
            self._unsaved_best = None
        model_files.save_to_job(self._checkpoint(model), model_files.LAST_FILE, fl_ctx)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Record the best model; write a validated model; delete a best model that is dropped."""
        super().handle_event(event_type, fl_ctx)
        model = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if event_type == AppEventType.GLOBAL_BEST_MODEL_AVAILABLE:
            self._best = fl_ctx.get_prop(BEST)
            self._unsaved_best = self._checkpoint(model)
        elif event_type == MODEL_VALIDATED:
            try:
                self._save_measured(self._checkpoint(model), fl_ctx)
            except CheckpointError as error:  # FLARE only logs an error raised in an event
                self.system_panic(str(error), fl_ctx)
        elif event_type == BEST_DROPPED:
            self._best = self._unsaved_best = None
            for folder in model_files.checkpoint_folders(fl_ctx):
                (folder / model_files.BEST_FILE).unlink(missing_ok=True)

    def _save_measured(self, model: Checkpoint, fl_ctx: FLContext) -> None:
        """Write a validated model, the last or a candidate, and name it best if it was selected."""
        made = model.manifest.get(CANDIDATE)
        name = f"{made}.npz" if made else model_files.LAST_FILE
        model_files.save_to_job(model, name, fl_ctx)
        if self._unsaved_best is None:
            return
        self._unsaved_best = None
        if made:  # the manifest of the last model has the record of the best one
            model_files.save_to_job(self._checkpoint(self._last), model_files.LAST_FILE, fl_ctx)
        model_files.link_in_job(name, model_files.BEST_FILE, fl_ctx)

    def _checkpoint(self, learnable: ModelLearnable) -> Checkpoint:
        model = GlobalModel.from_learnable(learnable)
        best = {} if self._best is None else {"best": self._best}
        return replace(model, manifest=model.manifest.with_facts(**best, **made_now()))
