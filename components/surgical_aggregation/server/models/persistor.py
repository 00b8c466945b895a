"""The persistor: last and best global model on the server's disk after every round."""

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


@dataclass(eq=False)
class CheckpointPersistor(ModelPersistor):
    """Keep the last and the best global model on disk, each with its manifest.

    Runs on the server and needs NumPy only. Starts from the last model of the job that it
    `continues`, else from a `file` or the checkpoint that the `InitialBody` component names (under
    FLARE's FedAvg no run can be continued, and the run ends with the reason). Writes last.npz
    after every round, and a file for each of the `candidates` once it is measured, atomically; both
    `checkpoint_folders` have the same file. The manifest of last.npz has the record of the best
    model so far.

    A better model (GLOBAL_BEST_MODEL_AVAILABLE) becomes best.npz together with the next last.npz,
    just before it. A run that is killed loses the round that is running, and finds the better model
    again when it repeats that round.

    From a checkpoint of an earlier job the run continues round, classes and history (see
    `Manifest.started_by`), the optimizer's moments, and the best model, if best.npz lies beside the
    checkpoint and fits its record, until a better one comes or `BestModelSelector` finds that it
    cannot be compared.

    Args:
        continues: Id of an earlier job at this server, which this one continues, whatever the
            initial body; or several, see `checkpoint_of`. Default "": none.
        file: Path of the checkpoint to start from, in place of an `InitialBody` component; see
            `named_by_job`. Default None.
    """

    continues: str = ""
    file: str | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self._unsaved_best: Checkpoint | None = None
        self._best: dict[str, Any] | None = None
        self._last = ModelLearnable()

    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        """Read the checkpoint to start from; an unusable one ends the run before training."""
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
            needs_federated_training(self, "continuing a run", fl_ctx)
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
                f"the model has columns of {shown(pair[0])} and {shown(pair[1])}, which are one "
                "class spelt twice; both are kept. Have all sites spell it in one way, and take "
                "the other out of the model",
            )
        self._last = GlobalModel(checkpoint.variables, manifest, checkpoint.moments).to_learnable()
        return self._last

    def _take_over_best(self, start: Checkpoint, path: Path, fl_ctx: FLContext) -> None:
        """Make the earlier run's best model this run's, where it is there."""
        record = start.manifest.get("best")
        if record is None or "job" not in start.manifest:  # of training alone: no earlier job's
            return
        beside = path.with_name(model_files.BEST_FILE)
        try:
            of_start = start.manifest.round, start.manifest.get(CANDIDATE)
            best = start if (record["round"], record.get(CANDIDATE)) == of_start else load(beside)
            if best.manifest.get("best") != record:
                raise CheckpointError(f"{str(beside)!r} is another model")
        except CheckpointError as error:
            self.log_warning(
                fl_ctx,
                f"the earlier run's best model, of round {record['round']}, is not beside the "
                f"checkpoint ({error}); this run looks for a best one of its own",
            )
            return
        model_files.save_to_job(best, model_files.BEST_FILE, fl_ctx)
        self._best = record
        fl_ctx.set_prop(BEST, record, private=True, sticky=False)

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint to start from.

        Raises:
            CheckpointError: There is none, or the job may not name it.
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
        """Write the last model, and the best one where there is a new one.

        Raises:
            CheckpointError: The disk does not take it; FLARE then ends the run with the reason.
        """
        self._last = model
        if self._unsaved_best is not None:
            model_files.save_to_job(self._unsaved_best, model_files.BEST_FILE, fl_ctx)
            self._unsaved_best = None
        model_files.save_to_job(self._checkpoint(model), model_files.LAST_FILE, fl_ctx)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Note the best model, write one that was measured; remove a best one that is dropped."""
        super().handle_event(event_type, fl_ctx)
        model = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if event_type == AppEventType.GLOBAL_BEST_MODEL_AVAILABLE:
            self._best = fl_ctx.get_prop(BEST)
            self._unsaved_best = self._checkpoint(model)
        elif event_type == MODEL_VALIDATED:
            try:
                self._save_measured(self._checkpoint(model), fl_ctx)
            except CheckpointError as error:  # FLARE would log what an event raises
                self.system_panic(str(error), fl_ctx)
        elif event_type == BEST_DROPPED:
            self._best = self._unsaved_best = None
            for folder in model_files.checkpoint_folders(fl_ctx):
                (folder / model_files.BEST_FILE).unlink(missing_ok=True)

    def _save_measured(self, model: Checkpoint, fl_ctx: FLContext) -> None:
        """Write the last model or a candidate, which is the best one where that is not written."""
        made = model.manifest.get(CANDIDATE)
        name = f"{made}.npz" if made else model_files.LAST_FILE
        model_files.save_to_job(model, name, fl_ctx)
        if self._unsaved_best is None:
            return
        self._unsaved_best = None
        model_files.name_in_job(name, model_files.BEST_FILE, fl_ctx)
        if made:  # the manifest of the last model has the record of the best one
            model_files.save_to_job(self._checkpoint(self._last), model_files.LAST_FILE, fl_ctx)

    def _checkpoint(self, learnable: ModelLearnable) -> Checkpoint:
        model = GlobalModel.from_learnable(learnable)
        best = {} if self._best is None else {"best": self._best}
        return replace(model, manifest=model.manifest.with_facts(**best, **made_now()))
