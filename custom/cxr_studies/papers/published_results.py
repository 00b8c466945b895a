"""The papers' results, from their tables and text, for comparison with ours.

`published_results.csv` has one line for each mean AUROC:

    source           key of `SOURCES`
    table            its number there; "text" where it is in no table
    study, scenario   of the shipped study that repeats the experiment; "average" over its
                     scenarios
    method, strategy as `rows` has them. No strategy: the source has one model without a federation,
                     which is shown with ours of either batch norm. In the tables of ML4H 2024 it is
                     fedavg: "trained with all weights unfrozen"
    model            "global", "local" (of each site), the site whose model it is, or "server":
                     FedFBN's "FedBN (Global)"; whose batch norm it has is not stated
    test, group      test set and classes as in `study_results`; or the site that labels the classes
    classes          their number; of ML4H 2024's ablations on MIMIC those that the models have
    auroc            mean over classes
    sd               over classes, of an average over scenarios
    low, high        95 % bootstrap interval of the mean, as printed
    bce              mean binary cross-entropy
    mark, p          of the AUROC against that of surgical aggregation, as printed: ML4H 2024 has
                     marks (ns: p > 0.05, * p <= 0.05, ** p <= 0.01, *** p <= 0.001), version 1 of
                     arXiv:2301.06683 p values, FedFBN neither

The averages in the text of arXiv:2301.06683, v1, are left out: those of one experiment are printed
twice, for another one too, and their SD is not that of their table. Its "federated learning" has
the partial loss. FedFBN is fedbn+.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario, Study, read_study, shipped

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "ml4h2024": "ML4H 2024",
        "arxiv2301.06683v1": "arXiv:2301.06683 v1",
        "arxiv2303.06180": "arXiv:2303.06180",
    }
)
"""Source -> its name in captions. All are by Kulkarni et al."""

AVERAGE = "average"
"""In place of a scenario: the mean over all of them."""

LOCAL = "local"
"""In place of a model: that of the tested site, where every site has its own."""

_FILE = Path(__file__).with_name("published_results.csv")


@dataclass(frozen=True)
class Place:
    """What a mean is of: the key by which our cells and published ones are matched.

    Attributes:
        scenario: Name, or `AVERAGE`.
        row: Method and strategy.
        model: `run_folder.GLOBAL` or `SERVER`, `LOCAL`, or the site that it belongs to.
        test: Test set.
        group: Of its classes; see `study_results.GROUPS`.
    """

    scenario: str
    row: Row
    model: str
    test: str
    group: str


@dataclass(frozen=True)
class Published:
    """A line of the file; see the module's docstring. What is not printed is None or ""."""

    source: str
    table: str
    study: str
    place: Place
    classes: int
    auroc: float
    sd: float | None
    low: float | None
    high: float | None
    bce: float | None
    mark: str
    p: str

    @property
    def citation(self) -> str:
        """Paper and table, e.g. "ML4H 2024, Table 2"."""
        where = self.table if self.table == "text" else f"Table {self.table}"
        return f"{SOURCES[self.source]}, {where}"


@cache
def read() -> tuple[Published, ...]:
    """All lines of the file, in its order."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        return tuple(map(_line, csv.DictReader(file)))


def as_shipped(study: Study) -> frozenset[str]:
    """Names of the scenarios that the shipped study of the same name has, unchanged."""
    known = _scenarios(study.name)
    return frozenset(scenario.name for scenario in study.scenarios if scenario in known)


def of_study(study: Study) -> tuple[Published, ...]:
    """Published results of a study's unchanged scenarios and, if all are unchanged, their average.

    Args:
        study: Shipped, or one with the name of a shipped study.
    """
    names = as_shipped(study)
    if names and len(names) == len(study.scenarios) == len(_scenarios(study.name)):
        names |= {AVERAGE}
    return tuple(
        line for line in read() if line.study == study.name and line.place.scenario in names
    )


def find(lines: Iterable[Published], place: Place) -> Published | None:
    """The published result of a place.

    Args:
        lines: Published results.
        place: What the mean is of.

    Returns:
        The first match; a line without a strategy matches every strategy. None without a match.
    """
    anyhow = Place(place.scenario, Row(place.row.method, ""), place.model, place.test, place.group)
    return next((line for line in lines if line.place in (place, anyhow)), None)


@cache
def _scenarios(name: str) -> tuple[Scenario, ...]:
    """Scenarios of the shipped study of that name; none where there is no such study."""
    return read_study(name).scenarios if name in shipped() else ()


def _line(values: Mapping[str, str]) -> Published:
    """A line of the csv with its types."""
    row = Row(values["method"], values["strategy"])
    where = (values[name] for name in ("model", "test", "group"))
    printed: dict[str, Any] = {
        name: float(values[name]) if values[name] else None
        for name in ("auroc", "sd", "low", "high", "bce")
    }
    printed |= {name: values[name] for name in ("source", "table", "study", "mark", "p")}
    place = Place(values["scenario"], row, *where)
    return Published(place=place, classes=int(values["classes"]), **printed)
