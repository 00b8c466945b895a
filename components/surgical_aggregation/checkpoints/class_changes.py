"""Classes imported into a model with the same body, without any training, and removed from one.

Nothing else ever removes a class from a model.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from surgical_aggregation.aggregation.moments import without
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST_OF_ROUNDS


def check_classes(into: Checkpoint, source: Checkpoint, classes: Iterable[str]) -> tuple[str, ...]:
    """The classes to import, sorted.

    Raises:
        ValueError: One is not the source's, or the model has it already, or none was named.
    """
    wanted = _known(classes, wire.classes_of(source.variables), "import")
    own = wire.classes_of(into.variables)
    if twice := [name for name in wanted if name in own]:
        raise ValueError(
            f"the model has {twice} already, and its own columns are never replaced. Import the "
            "others, or remove its own first"
        )
    return tuple(wanted)


def differing_bodies(into: Checkpoint, source: Checkpoint) -> str | None:
    """Why a column of one model means nothing in another; None: their bodies are equal."""
    (own, _), (other, _) = wire.split(into.variables), wire.split(source.variables)
    if digest(own) == digest(other):
        return None
    digests = f"sha256 {digest(own)[:16]}… and {digest(other)[:16]}…"
    if own.keys() != other.keys() or any(own[n].shape != other[n].shape for n in own):
        return f"their bodies are different networks ({digests})"
    changed = [name for name in own if not np.array_equal(own[name], other[name])]
    return (
        f"their bodies differ in {len(changed)} of {len(own)} variables, e.g. {sorted(changed)[0]} "
        f"({digests}): a column weighs the features of the body that it was trained on"
    )


def import_classes(into: Checkpoint, source: Checkpoint, classes: Iterable[str]) -> Checkpoint:
    """Add columns of a model to another whose body is the same, bit for bit.

    All that the model has stays as it is, bit for bit, but its best record: that was measured
    without the new classes. Its manifest says of every imported class who trained it, and under
    "imported" what model it is from.

    Args:
        into: The model that gets the columns.
        source: The model that has them.
        classes: Names.

    Raises:
        ValueError: The bodies differ, or a class cannot be imported; see `check_classes`.
    """
    wanted = check_classes(into, source, classes)
    if why := differing_bodies(into, source):
        raise ValueError(f"the classes cannot be imported: {why}.")
    _, columns = wire.split(source.variables)
    return with_columns(into, source, {name: columns[name] for name in wanted})


def with_columns(
    into: Checkpoint,
    source: Checkpoint,
    columns: wire.Columns,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
) -> Checkpoint:
    """Add columns to a model, and to its manifest what is known of them.

    Args:
        into: The model.
        source: Where the classes come from.
        columns: Class -> (kernel, bias).
        facts: Class -> what its manifest says under "imported" besides its origin.
    """
    more = facts or {}
    trained = {
        name: {
            **source.manifest.get("classes", {}).get(name, {"sites": [], "last_round": None}),
            "imported": {**_origin(source, name), **more.get(name, {})},
        }
        for name in columns
    }
    classes = {**into.manifest.get("classes", {}), **trained}
    manifest = into.manifest.without("best", BEST_OF_ROUNDS).with_facts(classes=classes)
    return Checkpoint(wire.join(into.variables, columns), manifest, into.moments)


def _origin(source: Checkpoint, name: str) -> dict[str, Any]:
    """What is known of the model that a class is from."""
    manifest = source.manifest
    measured: Mapping[str, Mapping[str, float]] = manifest.get("validation", {}).get("auroc", {})
    return {
        "model_sha256": digest(source.variables),
        "round": manifest.get("round"),
        "created": manifest.get("created"),
        "auroc": {site: of[name] for site, of in measured.items() if name in of},
    }


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
    if measured := kept.get("validation"):
        auroc = {
            site: left
            for site, of in measured["auroc"].items()
            if (left := {name: value for name, value in of.items() if name not in gone})
        }
        kept = kept.with_facts(validation={**measured, "auroc": auroc})
    dropped = {name for name in checkpoint.variables if wire.class_of(name) in gone}
    return Checkpoint(
        {name: v for name, v in checkpoint.variables.items() if name not in dropped},
        kept,
        without(checkpoint.moments, dropped),
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
    """The classes to import, keep or remove, sorted: one at least, of those that a model has."""
    named = sorted(set(classes))
    if (unknown := [name for name in named if name not in has]) or not named:
        raise ValueError(
            f"classes to {to} must be among {list(has)}; got {unknown or 'none'}. Check the "
            "spelling."
        )
    return named
