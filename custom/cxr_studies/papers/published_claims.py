"""What the papers claim about their studies: `published_claims.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from cxr_studies.papers import claim
from cxr_studies.papers.claim import Claim, Comparison
from cxr_studies.plan.row import Row

_FILE = Path(__file__).with_name("published_claims.yaml")


@cache
def read() -> tuple[Claim, ...]:
    """All claims, in the file's order."""
    return tuple(
        Claim(
            each["claim"],
            study,
            each["source"],
            each["published"],
            tuple(which for entry in each["comparisons"] for which in _comparisons(entry)),
        )
        for study, claims in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()
        for each in claims
    )


def _comparisons(entry: Mapping[str, Any]) -> Iterator[Comparison]:
    rest = {name: entry[name] for name in ("model", "margin") if name in entry}
    kind = getattr(claim, entry.get("kind", "ahead").upper())
    scenarios: list[tuple[str, ...]] = [(name,) for name in entry.get("scenarios", ())] or [()]
    for worse, test, group, names in product(
        entry["worse"], entry["tests"], entry.get("groups", ["all"]), scenarios
    ):
        yield Comparison(_row(entry["better"]), _row(worse), test, kind, group, names, **rest)


def _row(text: str) -> Row:
    method, strategy = text.split()
    return Row(method, strategy)
