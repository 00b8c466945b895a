"""How to go on by hand, in words."""

from __future__ import annotations

from collections.abc import Sequence


def resume(left: Sequence[str]) -> str:
    """How to go on by hand from the first of some jobs that left a model."""
    again = "Go on: the same command with another --out"
    if not left:
        return f"{again} (it was not seen to make a round, which it could go on from)"
    continues = f"--set continues={','.join(left)} and --set num_rounds=0"
    return f"{again}, {continues} (the rounds that are missing)"


def left_alone(job_id: str, left: Sequence[str], error: Exception) -> str:
    """What is said of a job whose server does not answer; `left`: see `resume`."""
    may_have_left = list(dict.fromkeys([job_id, *left]))
    return (
        f"{error}\nJob {job_id} is left to itself: it may have ended, go on, or begin by itself. "
        f"Once the server answers, watch it with surgagg deploy watch. {resume(may_have_left)}"
    )
