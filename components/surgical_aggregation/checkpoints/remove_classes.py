"""Taking classes out of a global model, on purpose: nothing else ever removes one."""

from __future__ import annotations

from collections.abc import Iterable

from surgical_aggregation.aggregation import server_optimizer
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.wire import variables as wire


class RetirementError(ValueError):
    """A class that is to be retired is not in the model."""


def remove(checkpoint: Checkpoint, classes: Iterable[str]) -> Checkpoint:
    """Drop the columns of classes, and what the server's optimizer remembers of them.

    Args:
        checkpoint: A global model.
        classes: Names of the classes.

    Returns:
        The model without them. Its manifest says under `retired`, for each class, the round and
        the sites that had taught it. It has no best record: that was measured with those classes.

    Raises:
        RetirementError: The model has no such class, or none was named.
    """
    gone = sorted(set(classes))
    has = wire.classes_of(checkpoint.variables)
    unknown = [name for name in gone if name not in has]
    if unknown or not gone:
        raise RetirementError(
            f"classes to retire must be among {list(has)}; got {unknown or 'none'}. "
            "Check the spelling."
        )
    if len(gone) == len(has):
        raise RetirementError(f"a model needs at least one class; {gone} are all that it has.")
    manifest = checkpoint.manifest
    taught = manifest.get("classes", {})
    removed = {
        name: {
            "round": manifest.get("round", 0),
            "sites": taught.get(name, {}).get("sites", []),
        }
        for name in gone
    }
    dropped = {name for name in checkpoint.variables if wire.class_of(name) in gone}
    return Checkpoint(
        {name: v for name, v in checkpoint.variables.items() if name not in dropped},
        {
            **{key: fact for key, fact in manifest.items() if key != "best"},
            "classes": {name: facts for name, facts in taught.items() if name not in gone},
            "removed": {**manifest.get("removed", {}), **removed},
        },
        server_optimizer.without(checkpoint.moments, dropped),
    )
