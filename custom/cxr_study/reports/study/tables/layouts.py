"""How the papers lay out their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.captions import classes
from cxr_study.reports.study.tables.cells import Metric
from cxr_study.reports.study.tables.tables import TESTS, Column
from cxr_study.studies.plan.study_file import Study


@dataclass(frozen=True)
class Layout:
    """A table without its figures.

    Attributes:
        name: For files and references.
        title: For people.
        columns: Test sets, classes or settings.
        frozen: Whether federations with a batch norm that is not frozen are left out.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    frozen: bool = False

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Those of a study that the table has."""
        return [
            row for row in rows if not self.frozen or not row.federated or row.strategy == "fedbn+"
        ]


def averages(study: Study) -> bool:
    """Whether means over a study's settings are shown: where all of them cut the same data set.

    Settings with data sets as sites are laid out one by one, as in the papers.
    """
    cuts = {setting.cut for setting in study.settings}
    return len(cuts) == 1 and None not in cuts


def _columns(setting: str, *parts: tuple[str, str]) -> tuple[Column, ...]:
    """AUROC of test sets with groups of classes."""
    return tuple(Column(classes(*part), part[0], (setting,), part[1]) for part in parts)


def _with_bce(setting: str, *parts: tuple[str, str]) -> tuple[Column, ...]:
    """BCE and AUROC of test sets with groups of classes."""
    metrics: tuple[Metric, ...] = ("bce", "auroc")
    return tuple(
        Column(metric.upper(), test, (setting,), group, metric, classes(test, group))
        for test, group in parts
        for metric in metrics
    )


_ALL = tuple((test, "all") for test in TESTS)
_BOTH = "NIH and CheXpert, trained on the classes of both"
_EACH = "NIH and CheXpert, trained on all classes"
_IID = "NIH cut into two sites"
_PARTIAL = f"{_IID} with some of its classes each"

PAPERS: Mapping[str, tuple[str, tuple[Layout, ...]]] = MappingProxyType(
    {
        "nih-chexpert": (
            "ml4h2024",
            (
                Layout("table-1", _BOTH, _columns("7", *_ALL)),
                Layout("table-2", _EACH, _columns("20", *_ALL)),
                Layout(
                    "table-3",
                    f"{_EACH}: those of both and of one",
                    _columns(
                        "20",
                        ("nih", "shared"),
                        ("nih", "unique"),
                        ("chexpert", "shared"),
                        ("chexpert", "unique"),
                    ),
                    frozen=True,
                ),
                Layout(
                    "table-4",
                    f"{_EACH}: those of each",
                    _columns("20", ("mimic", "nih"), ("mimic", "chexpert")),
                ),
            ),
        ),
        "fedfbn": (
            "arxiv2303.06180",
            (
                Layout(
                    "table-1",
                    f"{_IID} with all its classes each",
                    _with_bce("iid complete", ("nih", "all"), ("mimic", "chexpert")),
                ),
                Layout(
                    "table-2a",
                    f"{_PARTIAL}: those of both",
                    _with_bce("iid partial", ("nih", "shared")),
                ),
                Layout(
                    "table-2b",
                    _PARTIAL,
                    _with_bce(
                        "iid partial",
                        ("nih", "nih-1"),
                        ("nih", "nih-2"),
                        ("nih", "all"),
                        ("mimic", "chexpert"),
                    ),
                ),
                Layout("table-3", _BOTH, _with_bce("non-iid complete", *_ALL)),
                Layout(
                    "table-4a",
                    f"{_EACH}: those of both",
                    _with_bce("non-iid partial", *((test, "shared") for test in TESTS)),
                ),
                Layout(
                    "table-4b",
                    _EACH,
                    _with_bce(
                        "non-iid partial",
                        ("nih", "all"),
                        ("chexpert", "all"),
                        ("mimic", "chexpert"),
                    ),
                ),
            ),
        ),
    }
)
"""Shipped study -> key of `published_results.SOURCES`, and the tables there."""
