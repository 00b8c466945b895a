"""What is compared: ways to train, and what all of them have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cxr_study.jobs.methods import SOLO_STRATEGIES, Row
from cxr_study.runs import baseline_run

ENDINGS = ("equal rounds", "early stopping")
"""Which model of a training is measured: the last after so many rounds, or the best before it was
stopped."""

_STRATEGIES: Mapping[str, Sequence[str]] = {
    "surgical": ("fedavg", "fedbn+", "fedbn"),
    "partial_loss": ("fedavg", "fedbn+"),
    "vanilla": ("fedavg", "fedbn+"),
    "personalised": ("fedavg", "fedbn+", "fedbn"),
    **{method: tuple(SOLO_STRATEGIES) for method in reversed(baseline_run.METHODS)},
}

ROWS = tuple(Row(method, strategy) for method, many in _STRATEGIES.items() for strategy in many)
"""All methods with all the strategies that apply to them."""

HEAD_WEIGHTINGS = tuple(Row("surgical", "fedbn+", name) for name in ("samples", "positives"))
"""Rows on request: other weights of the sites in the mean of a class's column."""


class ComparisonError(ValueError):
    """A comparison cannot be made, or its folder holds another one."""


@dataclass(frozen=True)
class Setup:
    """What all rows of a comparison have in common.

    Attributes:
        sites: Names of the sites.
        rounds: After how many rounds the last model counts for "equal rounds".
        most_rounds: Rounds at most, until early stopping.
        patience: Rounds without a better model after which to stop, once `rounds` are over.
        settings: Knob -> value of every job; the others stay as the jobs have them.
    """

    sites: tuple[str, ...]
    rounds: int
    most_rounds: int
    patience: int
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One training: a row with one seed on one set of data.

    Attributes:
        row: How.
        seed: Of initial heads, order, augmentation; and of the phantom, where that is drawn.
        setup: What the rows have in common.
        site_files: Folder of <site>.yaml.
        initial_body: Checkpoint to start from.
        label: Put before the name where the same row is trained for another purpose.
    """

    row: Row
    seed: int
    setup: Setup
    site_files: Path
    initial_body: Path
    label: str = ""

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{self.label}{self.row.name}-seed{self.seed}"

    def to_json(self) -> dict[str, Any]:
        """As JSON-serialisable values."""
        values = dataclasses.asdict(self)
        values["setup"]["sites"] = list(self.setup.sites)
        return {
            **values,
            "site_files": str(self.site_files),
            "initial_body": str(self.initial_body),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Cell:
        """The inverse of `to_json`."""
        setup = {**values["setup"], "sites": tuple(values["setup"]["sites"])}
        return cls(
            Row(**values["row"]),
            values["seed"],
            Setup(**setup),
            Path(values["site_files"]),
            Path(values["initial_body"]),
            values["label"],
        )
