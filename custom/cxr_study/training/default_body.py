"""The initial body of the chest X-ray study."""

from pathlib import Path

from cxr_study.phantom.demo_data import PRETRAINED_BODY
from surgical_aggregation.server.models.model_files import InitialBody


class ChestXrayInitialBody(InitialBody):
    """The configured checkpoint, or the demo study's pre-trained body where none is.

    Runs on the server.

    Args:
        file: Checkpoint to start from, made by `surgagg model init` or by an earlier run. Default
            None: the demo study's.
    """

    def path(self) -> Path:
        """Path of the checkpoint."""
        return Path(self.file) if self.file else PRETRAINED_BODY
