"""The initial body of the chest X-ray study."""

from pathlib import Path

from cxr_study.embedded import embedded_initial_body
from surgical_aggregation.checkpoint import load
from surgical_aggregation.initial_body import InitialBody


class InitialBodyError(ValueError):
    """An initial body is of another network than the job's."""


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


def check_network(file: Path | None, *, backbone: str, hidden: int) -> None:
    """Refuse an initial body of another network, before anything is trained.

    Args:
        file: Checkpoint; None: the embedded study's.
        backbone: The job's; see `model.build`.
        hidden: The job's; see `model.build`.

    Raises:
        InitialBodyError: The body is of another network, as far as its manifest says of which.
        CheckpointError: The file is missing or no checkpoint.
    """
    facts = {"backbone": "small_densenet"} if file is None else load(file).manifest
    made_for = (facts.get("backbone", backbone), facts.get("hidden", 0))
    if made_for != (backbone, hidden):
        raise InitialBodyError(
            f"the job's network is {backbone} with {hidden} hidden units; the initial body "
            f"{file or 'of the embedded phantom study'} is of {made_for[0]} with {made_for[1]}. "
            f"Make one: surgagg init initial.npz --backbone {backbone} --hidden {hidden}; and give "
            "it with --initial-body."
        )
