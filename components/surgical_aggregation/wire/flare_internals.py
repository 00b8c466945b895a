"""Internals of FLARE and TensorBoard that the project needs, each with the version that has it.

Tests fail where an installed version does not have it any more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext


def plan_rounds(workflow: Any, first: int, number: int) -> None:
    """Set a ScatterAndGather's first round and number of rounds, before or while it runs.

    FLARE 2.9 takes both in the constructor alone, and looks at `_start_round` and `_num_rounds`
    before every round.
    """
    workflow._start_round = first
    workflow._num_rounds = number


def end_for_no_return_code(fl_ctx: FLContext) -> None:
    """Keep FLARE from ending the job for the return code of one site's result.

    FLARE 2.9's server runner has UNSAFE_JOB, TASK_UNKNOWN and RUN_MISMATCH in its attribute
    `ABORT_RETURN_CODES`.
    """
    if runner := fl_ctx.get_prop(FLContextKey.RUNNER):
        runner.ABORT_RETURN_CODES = []


def export_defaults(component: Any, arguments: Iterable[str]) -> None:
    """Have an exported job name these arguments, though they equal today's defaults.

    FLARE 2.9's FedJob names those in `_always_serialize_args`.
    """
    component._always_serialize_args = tuple(arguments)


def tensorboard_without_tensorflow() -> None:
    """Keep TensorBoard from importing TensorFlow where that is installed: 5 seconds and 600 MB.

    TensorBoard 2.18 to 2.20 use their own file functions where a module `tensorboard.compat.notf`
    exists. FLARE 2.9 writes events with TensorBoard.
    """
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("notf"))
