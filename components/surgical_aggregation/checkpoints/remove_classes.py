"""Removing classes from a global model, some or all but some; nothing else ever does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from surgical_aggregation.aggregation import server_optimizer
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.checkpoints.manifest import without_classes
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST_OF_ROUNDS


def remove(checkpoint: Checkpoint, classes: Iterable[str]) -> Checkpoint:
    """Drop the columns and the optimizer's moments of classes, their AUROC, and the best record.

    The manifest then says under `removed`, for each class, the round and the sites that trained it.

    Raises:
        ValueError: The model has no such class, would have none left, or none was named.
    """
    has = wire.classes_of(checkpoint.variables)
    gone = _known(classes, has, "remove")
    if len(gone) == len(has):
        raise ValueError(f"a model needs at least one class; {gone} are all that it has.")
    manifest = checkpoint.manifest
    facts = manifest.get("classes", {})
    sites = {name: facts.get(name, {}).get("sites", []) for name in gone}
    removed = {name: {"round": manifest.round, "sites": sites[name]} for name in gone}
    kept = manifest.without("best", BEST_OF_ROUNDS).with_facts(
        classes={name: of for name, of in facts.items() if name not in gone},
        removed={**manifest.get("removed", {}), **removed},
    )
    if "validation" in kept:
        kept = kept.with_facts(validation=without_classes(kept["validation"], gone))
    dropped = {name for name in checkpoint.variables if wire.class_of(name) in gone}
    return Checkpoint(
        {name: v for name, v in checkpoint.variables.items() if name not in dropped},
        kept,
        server_optimizer.without(checkpoint.moments, dropped),
    )


def keep(checkpoint: Checkpoint, classes: Iterable[str]) -> Checkpoint:
    """Keep some classes, and remove all others; see `remove`.

    Raises:
        ValueError: The model has no such class, or none was named.
    """
    has = wire.classes_of(checkpoint.variables)
    wanted = _known(classes, has, "keep")
    others = [name for name in has if name not in wanted]
    return remove(checkpoint, others) if others else checkpoint


def _known(classes: Iterable[str], has: Sequence[str], to: str) -> list[str]:
    """The classes to keep or to remove, sorted: one at least, of those that the model has."""
    named = sorted(set(classes))
    if (unknown := [name for name in named if name not in has]) or not named:
        raise ValueError(
            f"classes to {to} must be among {list(has)}; got {unknown or 'none'}. Check the "
            "spelling."
        )
    return named
