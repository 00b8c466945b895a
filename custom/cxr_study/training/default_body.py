"""The initial body of a job."""

from pathlib import Path

from cxr_study.phantom.demo_data import PRETRAINED_BODY
from surgical_aggregation.server.models.model_files import InitialBody


class ChestXrayInitialBody(InitialBody):
    """The configured checkpoint, or the demo study's pre-trained body where none is.

    Runs on the server.

    Args:
        file: Checkpoint of `surgagg model init` or of an earlier run; None: the demo study's.
    """

    def path(self) -> Path:
        """Path of the checkpoint."""
        return Path(self.file) if self.file else PRETRAINED_BODY
