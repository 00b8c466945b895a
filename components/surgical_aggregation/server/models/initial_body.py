"""The one body that every run starts from."""

from pathlib import Path

from nvflare.apis.fl_component import FLComponent

from surgical_aggregation.checkpoints.checkpoint import CheckpointError


class InitialBody(FLComponent):
    """Where the server finds the checkpoint to start from.

    Runs on the server. The file is made once (`surgagg model init`) or is the last.npz or best.npz
    of an earlier run, which this run then continues, on the same sites or others: see `lineage` for
    what goes on, and `retirement` for how a class is taken out before that.

    Args:
        file: Path of the checkpoint on the server.
    """

    def __init__(self, file: str | None = None):
        super().__init__()
        self.file = file

    def path(self) -> Path:
        """Path of the checkpoint; a study may make the file here when it is not there.

        Raises:
            CheckpointError: No file is configured.
        """
        if not self.file:
            raise CheckpointError(
                "the server needs the file of the initial body; none is configured. Make one with "
                "`surgagg model init` and set initial_body in the job's server configuration."
            )
        return Path(self.file)
