"""Whether an initial body is of a job's network; needs no FLARE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class InitialBodyError(ValueError):
    """An initial body is of another network than the job's."""


def check_network(file: Path | None, *, backbone: str, hidden: int) -> None:
    """Refuse an initial body of another network, before anything is trained.

    Args:
        file: Checkpoint; None: the phantom's.
        backbone: The job's; see `network.build`.
        hidden: Likewise.

    Raises:
        InitialBodyError: The body is of another network, as far as its manifest says of which.
        CheckpointError: The file is missing or no checkpoint.
    """
    facts: Mapping[str, Any] = {"backbone": "small_densenet"}
    if file is not None:
        from surgical_aggregation.checkpoints.checkpoint import load

        facts = load(file).manifest
    made_for = (facts.get("backbone", backbone), facts.get("hidden", 0))
    if made_for != (backbone, hidden):
        raise InitialBodyError(
            f"the job's network is {backbone} with {hidden} hidden units; the initial body "
            f"{file or 'of the phantom'} is of {made_for[0]} with {made_for[1]}. "
            "Make one: surgagg model init initial.npz "
            f"--backbone {backbone} --hidden {hidden}; and "
            "give it with --initial-body."
        )
