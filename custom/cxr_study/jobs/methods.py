"""The papers' methods of training together, and the names of all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["METHODS"]


@dataclass(frozen=True)
class Method:
    """A method of training together.

    Attributes:
        name: Name of its job.
        title: Title for headings.
        head: How the head is trained and aggregated, as a sentence.
        strategy: Default treatment of batch norm; see `surgical_aggregation.aggregation.strategy`.
        personal_head: Whether each site keeps a head of its own.
        other_classes: How a site treats classes that it does not label: "omit", "absent" or
            "unknown"; see `ChestXraySite`.
        encrypted: Whether sites send homomorphically encrypted models.
    """

    name: str
    title: str
    head: str
    strategy: str = "fedbn+"
    personal_head: bool = False
    other_classes: str = "omit"
    encrypted: bool = False

    @property
    def union_head(self) -> bool:
        """Whether the head of every site has the classes of all sites."""
        return self.other_classes != "omit"

    @property
    def common_model(self) -> bool:
        """Whether the server has a complete model for all sites that it can read."""
        return not (self.personal_head or self.encrypted)


_METHODS = (
    Method(
        "surgical",
        "Surgical aggregation",
        "A class's column is averaged over the sites that label it; a site gets its own.",
    ),
    Method(
        "personalised",
        "Personalised federated learning",
        "The body is averaged; every site keeps its own head.",
        personal_head=True,
    ),
    Method(
        "vanilla",
        "Vanilla federated learning",
        "Every site predicts the union; classes that it does not label count as absent.",
        strategy="fedavg",
        other_classes="absent",
    ),
    Method(
        "partial_loss",
        "Federated learning with partial loss",
        "Every site predicts the union; classes that it does not label do not count.",
        other_classes="unknown",
    ),
    Method(
        "surgical_he",
        "Surgical aggregation under homomorphic encryption",
        "As surgical; the server adds and divides what it cannot read.",
        encrypted=True,
    ),
)
METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _METHODS})
"""Name of the method -> method."""

BATCH_NORM: Mapping[str, str] = {
    "fedavg": "batch norm averaged",
    "fedbn": "batch norm local",
    "fedbn+": "batch norm frozen",
    "fixbn": "batch norm statistics frozen",
}
"""Strategy -> what happens to batch norm, in words for pages."""

EVALUATION = "evaluation"
"""Name of the job that evaluates a model at the sites and trains none."""

CENSUS = "census"
"""Name of the job that counts images and labels at the sites, before training."""

JOBS = (*METHODS, EVALUATION, CENSUS)
"""Names of all jobs."""

BEYOND = (
    "average_decay", "body_weighting", "pseudo_labels", "refit_model",
    "server_optimizer",
)  # fmt: skip
"""Settings that go beyond the papers of these methods; each is off by default."""
