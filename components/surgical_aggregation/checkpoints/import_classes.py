"""Classes of one model for another with the same body, without any training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST_OF_ROUNDS


def check_classes(into: Checkpoint, source: Checkpoint, classes: Iterable[str]) -> tuple[str, ...]:
    """The classes to import, sorted.

    Raises:
        ValueError: One is not the source's, or the model has it already, or none was named.
    """
    wanted = tuple(sorted(set(classes)))
    offered, own = wire.classes_of(source.variables), wire.classes_of(into.variables)
    unknown = [name for name in wanted if name not in offered]
    if unknown or not wanted:
        raise ValueError(
            f"classes to import must be among {list(offered)}; got {unknown or 'none'}. Check the "
            "spelling."
        )
    if twice := [name for name in wanted if name in own]:
        raise ValueError(
            f"the model has {twice} already, and its own columns are never replaced. Import the "
            "others, or remove its own first"
        )
    return wanted


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
