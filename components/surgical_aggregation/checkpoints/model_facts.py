"""Read a model's manifest into typed facts, and list what it lacks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surgical_aggregation.aggregation.one_sided import never_learned
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.checkpoints.manifest import Spans, contributed
from surgical_aggregation.wire import variables as wire

CONTRACT = {
    "backbone": "the name of the network",
    "hidden": "the units between pooling and head",
    "image_size": "the side of its input",
    "input": "how pixels are resized and normalised",
    "created": "the day it was made",
    "version": "the version of the software that made it",
    "strategy": "how batch normalisation was handled",
    "initial_body_sha256": "the digest of the body that training started from",
    "classes": "which sites trained each class",
    "validation": "the AUROC per site and class on validation splits",
}
"""Key that every model's manifest should have -> its meaning, in words."""


_ALONE = ("created", "version", "strategy", "initial_body_sha256", "round", "site")


@dataclass(frozen=True)
class TrainedRounds:
    """Consecutive rounds, the last included, in which the same sites trained a class."""

    first: int
    last: int
    sites: tuple[str, ...]


@dataclass(frozen=True)
class ClassTraining:
    """Which sites trained a class, and when.

    Attributes:
        sites: All sites that have trained it.
        last_round: The last round in which a site did; None: unknown.
        rounds: Rounds by ranges, oldest first; empty: unknown.
        imported: Facts about the model that the class was imported from; None: trained here.
        never_learned: Why no site could teach it, in words; None: a site could, or unknown.
    """

    sites: tuple[str, ...]
    last_round: int | None
    rounds: tuple[TrainedRounds, ...] = ()
    imported: Mapping[str, Any] | None = None
    never_learned: str | None = None


@dataclass(frozen=True)
class Validation:
    """Sites' metrics of a model on their validation splits.

    Attributes:
        round: Round of the model: the one that starts from it.
        auroc: Site -> class -> area under the ROC curve; undefined ones are left out.
    """

    round: int
    auroc: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class ModelFacts:
    """The facts of a model's manifest.

    Attributes:
        classes: In the order of the model's outputs.
        contributed: Site -> rounds in which its result was averaged, see `contributed`.
        trained: Class -> its training, for the classes in the manifest.
        network: `backbone`, `hidden`, `image_size` (pixels) and `input`, if the manifest has them;
            their meaning is the application's.
        created: Date, ISO 8601.
        version: Version of this software that wrote the model.
        strategy: See `aggregation.batch_norm_strategy`.
        initial_body_sha256: See `checkpoint.digest`.
        round: Number of rounds made.
        validation: Sites' metrics; None: not measured.
        site: Site whose personal model it is; None: the global model.
        lacks: Keys of `CONTRACT` that the manifest does not have.
        versions: Site that trained it -> package -> version that it declared last.
    """

    classes: tuple[str, ...]
    trained: Mapping[str, ClassTraining]
    contributed: Mapping[str, Spans]
    network: Mapping[str, Any]
    created: str | None
    version: str | None
    strategy: str | None
    initial_body_sha256: str | None
    round: int | None
    validation: Validation | None
    site: str | None
    lacks: tuple[str, ...]
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def never_learned(self) -> dict[str, str]:
        """Class of the model that no site could teach -> why, in words."""
        trained = {name: self.trained[name] for name in self.classes if name in self.trained}
        return {name: t.never_learned for name, t in trained.items() if t.never_learned}


def facts_of(checkpoint: Checkpoint) -> ModelFacts:
    """Read a checkpoint's manifest; facts that its program left out are None or empty."""
    manifest = checkpoint.manifest
    measured = manifest.get("validation")
    return ModelFacts(
        classes=wire.classes_of(checkpoint.variables),
        trained={name: _training(facts) for name, facts in manifest.get("classes", {}).items()},
        contributed=contributed(manifest),
        network={
            key: manifest[key]
            for key in ("backbone", "hidden", "image_size", "input")
            if key in manifest
        },
        **{name: manifest.get(name) for name in _ALONE},
        validation=Validation(measured["round"], measured["auroc"]) if measured else None,
        lacks=tuple(key for key in CONTRACT if not manifest.get(key) and manifest.get(key) != 0),
        versions=manifest.get("versions", {}),
    )


def _training(facts: Mapping[str, Any]) -> ClassTraining:
    rounds = tuple(TrainedRounds(a, b, tuple(sites)) for a, b, sites in facts.get("rounds", ()))
    return ClassTraining(
        tuple(facts.get("sites", ())),
        facts.get("last_round"),
        rounds,
        facts.get("imported"),
        never_learned(facts),
    )
