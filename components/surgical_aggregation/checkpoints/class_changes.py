"""Import classes into a model with the same body, without training, and remove classes.

Nothing else removes a class from a model.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from surgical_aggregation.aggregation.class_names import shown, twins
from surgical_aggregation.aggregation.server_optimizer import without
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST_OF_ROUNDS


def check_classes(into: Checkpoint, source: Checkpoint, classes: Iterable[str]) -> tuple[str, ...]:
    """Validate the classes to import; returns them sorted.

    Raises:
        ValueError: The source lacks one or has no usable column for it, the model already has one,
            perhaps in another spelling, or none is given.
    """
    wanted = _known(classes, wire.classes_of(source.variables), "import")
    own = wire.classes_of(into.variables)
    if twice := [name for name in wanted if name in own]:
        raise ValueError(
            f"the model already has {twice}, and columns are never replaced. Import the other "
            "classes, or remove these first"
        )
    if pair := twins([*own, *wanted]):
        raise ValueError(f"{shown(pair[0])} and {shown(pair[1])} are spellings of one class")
    columns = wire.split(source.variables)[1]
    features = into.manifest.get("head_features", columns[wanted[0]][0].size)
    for name in wanted:
        right = [part.shape for part in columns[name]] == [(features,), (1,)]
        if not right or any(p.dtype.kind != "f" or not np.isfinite(p).all() for p in columns[name]):
            raise ValueError(
                f"column {shown(name)} needs {features} weights and a bias, all finite"
            )
    return tuple(wanted)


def differing_bodies(into: Checkpoint, source: Checkpoint) -> str | None:
    """Why columns cannot move between two models; None: their bodies are equal."""
    (own, _), (other, _) = wire.split(into.variables), wire.split(source.variables)
    if digest(own) == digest(other):
        return None
    digests = f"sha256 {digest(own)[:16]}… and {digest(other)[:16]}…"
    if own.keys() != other.keys() or any(own[n].shape != other[n].shape for n in own):
        return f"their bodies are different networks ({digests})"
    changed = [name for name in own if digest({name: own[name]}) != digest({name: other[name]})]
    return (
        f"their bodies differ in {len(changed)} of {len(own)} variables, e.g. {sorted(changed)[0]} "
        f"({digests}): a column is valid only for the body that it was trained on"
    )


def import_classes(into: Checkpoint, source: Checkpoint, classes: Iterable[str]) -> Checkpoint:
    """Add columns of a model to another whose body is equal bit for bit.

    The model's own variables are unchanged. The record of the best model is dropped, since it was
    measured without the new classes. The manifest lists for each imported class the sites that
    trained it, and under "imported" the model that it came from.

    Args:
        into: The model that receives the columns.
        source: The model that has them.
        classes: Names of the classes.

    Returns:
        A new checkpoint.

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
    """Add columns to a model, and their facts to its manifest.

    Args:
        into: The model that receives the columns.
        source: The model that the classes come from.
        columns: Class -> (kernel of shape (features,), bias of shape (1,)).
        facts: Class -> facts to add under "imported"; with "refit", whose "site" is then the only
            one that trained the class. Default: none.
    """
    before, trained = source.manifest.get("classes", {}), {}
    for name in columns:
        own = (facts or {}).get(name, {})
        training = before.get(name, {"sites": [], "last_round": None})
        if "refit" in own:
            training = {"sites": [own["refit"]["site"]], "last_round": None}
        trained[name] = {**training, "imported": {**_origin(source, name), **own}}
    classes = {**into.manifest.get("classes", {}), **trained}
    manifest = into.manifest.without("best", BEST_OF_ROUNDS).with_facts(classes=classes)
    if gone := manifest.get("removed"):
        manifest = manifest.with_facts(
            removed={name: why for name, why in gone.items() if name not in columns}
        )
    return Checkpoint(wire.join(into.variables, columns), manifest, into.moments)


def _origin(source: Checkpoint, name: str) -> dict[str, Any]:
    """Facts about the model that a class comes from."""
    manifest = source.manifest
    measured: Mapping[str, Mapping[str, float]] = manifest.get("validation", {}).get("auroc", {})
    return {
        "model_sha256": digest(source.variables),
        "round": manifest.get("round"),
        "created": manifest.get("created"),
        "auroc": {site: own[name] for site, own in measured.items() if name in own},
    }


def remove(checkpoint: Checkpoint, classes: Iterable[str]) -> Checkpoint:
    """Remove classes: their columns, moments and AUROC, and the record of the best model.

    The manifest then has under `removed`, for each class, the round and the sites that trained it.

    Raises:
        ValueError: The model lacks a class, would have none left, or none is given.
    """
    has = wire.classes_of(checkpoint.variables)
    gone = _known(classes, has, "remove")
    if len(gone) == len(has):
        raise ValueError(f"a model needs at least one class; {gone} are all of its classes.")
    manifest = checkpoint.manifest
    facts = manifest.get("classes", {})
    sites = {name: facts.get(name, {}).get("sites", []) for name in gone}
    removed = {name: {"round": manifest.round, "sites": sites[name]} for name in gone}
    kept = manifest.without("best", BEST_OF_ROUNDS).with_facts(
        classes={name: own for name, own in facts.items() if name not in gone},
        removed={**manifest.get("removed", {}), **removed},
    )
    if measured := kept.get("validation"):
        auroc = {
            site: left
            for site, values in measured["auroc"].items()
            if (left := {name: value for name, value in values.items() if name not in gone})
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
        ValueError: The model lacks a class, or none is given.
    """
    has = wire.classes_of(checkpoint.variables)
    wanted = _known(classes, has, "keep")
    others = [name for name in has if name not in wanted]
    return remove(checkpoint, others) if others else checkpoint


def _known(classes: Iterable[str], has: Sequence[str], to: str) -> list[str]:
    """Validate classes against those of a model; at least one is needed. Returns them sorted."""
    named = sorted(set(classes))
    if (unknown := [name for name in named if name not in has]) or not named:
        raise ValueError(
            f"classes to {to} must be among {list(has)}; got {unknown or 'none'}. Check the "
            "spelling."
        )
    return named
