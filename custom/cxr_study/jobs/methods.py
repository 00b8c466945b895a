"""The methods of the papers, and the jobs that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["METHODS"]


@dataclass(frozen=True)
class Method:
    """A way to train together.

    Attributes:
        name: Of the job.
        title: For headings.
        head: What becomes of the head; a sentence.
        strategy: Its default for the body; see `surgical_aggregation.aggregation.strategy`.
        personal_head: Whether the head stays at the site.
        other_classes: How a site treats classes that it does not label; see `ChestXraySite`.
        encrypted: Whether what the sites send is homomorphically encrypted.
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
        """Whether every site predicts the classes of all."""
        return self.other_classes != "omit"

    @property
    def common_model(self) -> bool:
        """Whether the server has a whole model for all sites, which it can read."""
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
"""Name -> method."""

BATCH_NORM: Mapping[str, str] = {
    "fedavg": "batch norm averaged",
    "fedbn": "batch norm local",
    "fedbn+": "batch norm frozen",
    "fixbn": "batch norm statistics frozen",
}
"""Strategy -> what happens to batch norm, in words for pages."""

EVALUATION = "evaluation"
"""The job that measures a model and trains none."""

CENSUS = "census"
"""The job that counts what sites have, before anything is trained."""

JOBS = (*METHODS, EVALUATION, CENSUS)

BEYOND = (
    "average_decay", "body_weighting", "pseudo_labels", "refit_model",
    "server_optimizer",
)  # fmt: skip
"""Settings that no paper on these methods has, each off by default."""
