"""The initial body of a job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cxr_phantom import DRAWINGS, PHANTOM
from cxr_phantom.demo_data import PRETRAINED_BODY
from surgical_aggregation.checkpoints.checkpoint import CheckpointError
from surgical_aggregation.server.models.model_files import InitialBody
from surgical_aggregation.wire.headers import SIMULATED_JOB

if TYPE_CHECKING:
    from nvflare.apis.fl_context import FLContext


class ChestXrayInitialBody(InitialBody):
    """The configured checkpoint, or the body that was pre-trained on drawings.

    Runs on the server. Only the phantom starts from drawings without being told to.

    Args:
        file: Checkpoint of `surgagg model init` or of an earlier run, or "drawings"; None: drawings
            where FLARE's simulator runs on the phantom.
    """

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint.

        Raises:
            CheckpointError: No file is configured, and the images may be real ones; or the job may
                not name it, see `named_by_job`.
        """
        if self.file and self.file != DRAWINGS:
            return super().path(fl_ctx)
        is_phantom = os.environ.get("CXR_SITES", PHANTOM) in ("", PHANTOM)
        if self.file or (is_phantom and fl_ctx.get_job_id() == SIMULATED_JOB):
            return PRETRAINED_BODY
        raise CheckpointError(
            "the server needs an initial body by name. Make one (surgagg model init initial.npz "
            "--weights imagenet), and set CXR_INITIAL_BODY to its path where the server starts; "
            "'drawings', there or as the job's initial_body, is the body pre-trained on drawings."
        )
