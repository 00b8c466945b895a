"""A method of training together: which components its job has, and their options."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Method"]


@dataclass(frozen=True)
class Method:
    """A method of training together.

    Attributes:
        name: Name of its job, for commands, studies and scripts.
        title: Title for headings.
        head: How the head is trained and aggregated, as a sentence.
        strategy: What happens to batch norm by default; see
            `surgical_aggregation.aggregation.batch_norm_strategy`.
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
