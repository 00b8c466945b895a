"""Finds the model of an evaluation job, which was made outside of it."""

from pathlib import Path

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.checkpoints.checkpoint import CheckpointError, load
from surgical_aggregation.server.models.earlier_job import checkpoint_of
from surgical_aggregation.server.models.locator import OneModelLocator
from surgical_aggregation.server.models.persistor import BEST_FILE
from surgical_aggregation.wire import variables as wire

GIVEN = "given"
"""What the model is called."""


class GivenModelLocator(OneModelLocator):
    """Give FLARE's GlobalModelEval the best model of an earlier job, or else a checkpoint.

    Runs on the server. Where there is none that can be measured, the run ends with the reason.

    Args:
        file: Path of the checkpoint on the server. Default None.
        job: Id of an earlier job at this server, whose best model is meant, whatever the file.
            Default "": none.
    """

    def __init__(self, file: str | None = None, job: str = ""):
        super().__init__()
        self.file = file
        self.job = job

    @property
    def name(self) -> str:
        """The model's name."""
        return GIVEN

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint.

        Raises:
            CheckpointError: No model is given, or the job left none.
        """
        if self.job:
            return checkpoint_of(self.job, BEST_FILE, fl_ctx)
        if not self.file:
            raise CheckpointError(
                "an evaluation needs a model; none is configured. Give the id of an earlier job at "
                "this server, or the path of a checkpoint there, in the job's server configuration."
            )
        return Path(self.file)

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The model's name, once it is known that there is a model to measure."""
        try:
            path = self.path(fl_ctx)
            checkpoint = load(path)
            classes = wire.classes_of(checkpoint.variables)
            if not classes:
                raise CheckpointError(
                    f"{str(path)!r} has no column of any class, so nothing can be measured. It is "
                    "an initial body, or its sites kept their heads: give a model with a head."
                )
        except ValueError as error:
            self.system_panic(str(error), fl_ctx)
            return []
        facts = checkpoint.manifest
        self.log_info(
            fl_ctx,
            f"measuring {path}: {len(classes)} classes, {facts.get('round', 0)} rounds of job "
            f"{facts.get('job', 'none')}",
        )
        return [self.name]
