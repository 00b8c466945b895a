"""The methods of the papers, and the rows of the tables: a method with a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


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


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
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
    }
)
"""Name -> method."""

EVALUATION = "evaluation"
"""The job that measures a model and trains none."""

CENSUS = "census"
"""The job that counts what sites have, before anything is trained."""

JOBS = (*METHODS, EVALUATION, CENSUS)

BEYOND = (
    "average_decay", "body_weighting", "freeze_statistics_at", "pseudo_labels", "refit_model",
    "server_optimizer",
)  # fmt: skip
"""Settings that no paper on these methods has, each off by default."""

TITLES: Mapping[str, str] = {
    "surgical": "Surgical aggregation",
    "partial_loss": "FL with partial loss",
    "vanilla": "Vanilla FL",
    "personalised": "Personalised FL",
    "individual": "Individual",
    "centralised": "Centralised",
    "centralised-partial": "Centralised, partial loss",
    "complete": "Centralised, fully labelled",
}
"""Method -> its name in tables. "complete" trains on a whole data set with the labels of all its
classes, which the other methods have cut into sites: the baseline of the papers' ablations."""

SOLO_STRATEGIES: Mapping[str, str] = {"fedavg": "batch norm trained", "fedbn+": "batch norm frozen"}
"""What strategies mean without a federation."""


@dataclass(frozen=True)
class Row:
    """A line of the table: a method (of `TITLES`) with a strategy.

    A study may have variants of a strategy, by name: "fedavg refit" is "fedavg" with the settings
    that the study file gives the variant "refit".
    """

    method: str
    strategy: str

    @property
    def name(self) -> str:
        """A short name, different for every row, that can be a file's."""
        return f"{self.method}-{self.strategy}".replace(" ", "-")

    @property
    def job_strategy(self) -> str:
        """Strategy of the job, without the variant."""
        return self.strategy.partition(" ")[0]

    @property
    def variant(self) -> str:
        """Name of the variant; "": none."""
        return self.strategy.partition(" ")[2]

    @property
    def federated(self) -> bool:
        """Whether it is a FLARE job."""
        return self.method in METHODS

    @property
    def pooled(self) -> bool:
        """Whether it trains on the data of all sites in one place."""
        return not self.federated and self.method != "individual"

    @property
    def title(self) -> str:
        """The method, for people."""
        return TITLES[self.method]

    @property
    def strategy_title(self) -> str:
        """The strategy, for people."""
        shown = self.job_strategy if self.federated else SOLO_STRATEGIES[self.job_strategy]
        return f"{shown}, {self.variant}" if self.variant else shown
