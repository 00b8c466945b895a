"""What a job takes from the checkpoint that it starts from."""

from collections.abc import Mapping
from typing import Any

from surgical_aggregation.checkpoints.contributions import contributed
from surgical_aggregation.wire.headers import CANDIDATE


def start_manifest(manifest: Mapping[str, Any], job: str) -> dict[str, Any]:
    """Manifest of the model that a job starts from.

    A checkpoint that a job wrote (its manifest names the job) is continued: its round goes on, and
    that job goes into the history, oldest first: [{"job", "rounds": [first, one after the last]}].
    Any other is a fresh start, at round 0, to which nobody has contributed. The best record is left
    out, and that the model was made after training (see `headers.CANDIDATE`).

    Example:
        >>> start_manifest({"head_features": 4, "job": "a", "round": 3}, "b")["history"]
        [{'job': 'a', 'rounds': [0, 3]}]
    """
    started = {k: fact for k, fact in manifest.items() if k not in ("best", CANDIDATE)}
    started["job"] = job
    if "job" not in manifest:
        return started | {"round": 0, "contributed": {}}
    started["contributed"] = contributed(manifest)
    round_ = manifest.get("round", 0)
    earlier = {"job": manifest["job"], "rounds": [first_round(manifest), round_]}
    return started | {"round": round_, "history": [*manifest.get("history", []), earlier]}


def first_round(manifest: Mapping[str, Any]) -> int:
    """The first round of the job that wrote a checkpoint with this manifest."""
    history = manifest.get("history", [])
    return int(history[-1]["rounds"][1]) if history else 0


def missing_rounds(manifest: Mapping[str, Any]) -> int:
    """Planned rounds that a run with this manifest has not made; none where it stopped early."""
    made = int(manifest.get("round", 0))
    return int(manifest.get("planned_rounds", made)) - made


def continued(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a job continues: {"jobs", newest first, "round"}; None for a fresh run."""
    if not (history := manifest.get("history")):
        return None
    jobs = [earlier["job"] for earlier in reversed(history)]
    return {"jobs": jobs, "round": history[-1]["rounds"][1]}
