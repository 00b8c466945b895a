"""One run of a study: what it is, for people, for its process and for its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cxr_studies.plan.row import Row


def key_of(what: Mapping[str, Any]) -> str:
    """SHA-256 of JSON-serialisable values, shortened to 16 digits."""
    text = json.dumps(what, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Run:
    """One training with its tests.

    Attributes:
        seed: Of splits, cut, initial heads, order and augmentation.
        what: Everything that matters for what comes out, JSON-serialisable.
        where: Where its files are: site_files, sites, tests, test_sets, initial_body, of a run in a
            POC FLARE's project file; and whether the sites have splits of their own (given).
    """

    scenario: str
    row: Row
    seed: int
    what: Mapping[str, Any]
    where: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """Digest of `what`: runs with the same key are one and need to be made once only."""
        return key_of(self.what)

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.scenario}, {self.row.name}, seed {self.seed}"

    @property
    def facts(self) -> dict[str, Any]:
        """What tells it from others of its study, as columns of data frames."""
        names = "scenario", "method", "strategy", "seed"
        values = self.scenario, self.row.method, self.row.strategy, self.seed
        return dict(zip(names, values, strict=True))

    @property
    def rounds(self) -> int:
        """How many it makes at most."""
        return int(self.what["settings"]["num_rounds"])

    @property
    def processes(self) -> int:
        """How many train at the same time: one for each site of a federation."""
        return len(self.where["sites"]) if self.row.federated else 1
