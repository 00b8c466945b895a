"""A line of the tables: a method, federated or not, with a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cxr_study.jobs.methods import BATCH_NORM, METHODS

TITLES: Mapping[str, str] = {
    **{name: method.title for name, method in METHODS.items() if not method.encrypted},
    "surgical": "Surgical aggregation",
    "partial_loss": "FL with partial loss",
    "vanilla": "Vanilla FL",
    "personalised": "Personalised FL",
    "individual": "Individual",
    "centralised": "Centralised",
    "centralised-partial": "Centralised, partial loss",
    "complete": "Centralised, fully labelled",
}
"""Method -> its name in tables, also for the methods of packages. "complete" trains on a whole data
set with the labels of all its classes, which the other methods have cut into sites: the baseline of
the papers' ablations."""

SOLO_STRATEGIES: Mapping[str, str] = {
    "fedavg": "batch norm trained",
    "fedbn+": "batch norm frozen",
    "fixbn": "batch norm statistics frozen",
}
"""Strategy -> what happens to batch norm without a federation, in words."""


_BASELINES = ("individual", "centralised", "centralised-partial", "complete")


@dataclass(frozen=True)
class Row:
    """A line of the tables: a method with a strategy, and perhaps with a variant of it.

    A variant is named after a blank: "fedavg refit" is "fedavg" with the settings that the study
    file gives the variant "refit".

    Attributes:
        method: A key of `TITLES`.
        strategy: Strategy of the job, with the variant if there is one.

    Example:
        >>> Row("surgical", "fedbn+ refit").batch_norm
        'batch norm frozen, refit'
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
        return self.method not in _BASELINES

    @property
    def pooled(self) -> bool:
        """Whether it trains on the data of all sites in one place."""
        return not self.federated and self.method != "individual"

    @property
    def title(self) -> str:
        """The method's name in tables."""
        return TITLES[self.method]

    @property
    def batch_norm(self) -> str:
        """What happens to batch norm, and the variant, in words: for prose and captions.

        A strategy that an installed package offers has its name instead.
        """
        known = BATCH_NORM if self.federated else SOLO_STRATEGIES
        words = known.get(self.job_strategy, f"own strategy {self.job_strategy}")
        return f"{words}, {self.variant}" if self.variant else words

    @property
    def strategy_title(self) -> str:
        """The strategy in tables: the value in a federation, else in words; and the variant."""
        shown = self.job_strategy if self.federated else SOLO_STRATEGIES[self.job_strategy]
        return f"{shown}, {self.variant}" if self.variant else shown
