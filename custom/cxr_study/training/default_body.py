"""The initial body of the chest X-ray study."""

from pathlib import Path

from cxr_study.phantom.demo_data import embedded_initial_body
from surgical_aggregation.server.models.model_files import InitialBody


class ChestXrayInitialBody(InitialBody):
    """The configured checkpoint, or the embedded study's pre-trained body where none is.

    Runs on the server, which needs no TensorFlow: pre-training is a process of its own.

    Args:
        file: Checkpoint to start from, made by `surgagg init` or by an earlier run. Default None:
            the embedded study's.
    """

    def path(self) -> Path:
        """Path of the checkpoint."""
        return Path(self.file) if self.file else embedded_initial_body()
