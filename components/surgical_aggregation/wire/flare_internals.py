"""What the project needs of FLARE and of TensorBoard that they do not promise to keep.

Each function says which version has it; tests fail where an installed one does not any more.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext


def plan_rounds(workflow: Any, first: int, number: int) -> None:
    """Say which rounds a ScatterAndGather makes, before it starts or while it runs.

    FLARE 2.9 takes both in the constructor alone, before any model is loaded, and looks at
    `_start_round` and `_num_rounds` before every round.

    Args:
        workflow: The ScatterAndGather.
        first: Its first round.
        number: How many it makes.
    """
    workflow._start_round = first
    workflow._num_rounds = number


def end_for_no_return_code(fl_ctx: FLContext) -> None:
    """Keep FLARE from ending the job for the return code of one site's result.

    FLARE 2.9's server runner ends it for UNSAFE_JOB, TASK_UNKNOWN and RUN_MISMATCH, of its
    attribute `ABORT_RETURN_CODES`.

    Args:
        fl_ctx: Context of the run, on the server.
    """
    if runner := fl_ctx.get_prop(FLContextKey.RUNNER):
        runner.ABORT_RETURN_CODES = []


def tensorboard_without_tensorflow() -> None:
    """Keep TensorBoard from importing TensorFlow where that is installed: 5 seconds and 600 MB.

    TensorBoard 2.18 to 2.20 look whether there is a module `tensorboard.compat.notf`, which their
    build without TensorFlow has, and use file functions of their own then. FLARE 2.9 writes events
    with TensorBoard.
    """
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("notf"))
