"""Which data the papers had, and how ours are others: then figures are not compared.

Version 1 and FedFBN state 224,316 images of CheXpert; their splits have 223,414, as train.csv has.
What they do with blank labels nobody says; CheXpert's authors count them as negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cxr_studies.plan.site_files import DataSet
from cxr_study.data.labels.vocabulary import UNION_CLASSES


@dataclass(frozen=True)
class Had:
    """What a data set was used as.

    Attributes:
        images: Of all splits together.
        labels: Whose: the reader, see `readers.DATASETS`.
        classes: How many of the 20 of NIH and CheXpert.
        views: "frontal" or "all"; "frontal" where there are no others.
        uncertain: What uncertain labels count as, and blank ones.
    """

    images: int
    labels: str
    classes: int
    views: str = "frontal"
    uncertain: str = "zeros, blank negative"

    def __str__(self) -> str:
        views = "frontal images" if self.views == "frontal" else "images of all views"
        return (
            f"{self.images:,} {views}, {self.classes} classes of {self.labels}, uncertain "
            f"{self.uncertain}"
        )


_NIH = Had(112_120, "nih", 14)
_WHOLE = {
    "nih": _NIH,
    "chexpert": Had(223_414, "chexpert", 13, "all"),
    "mimic": Had(377_110, "mimic", 13, "all"),
}
PUBLISHED: Mapping[str, Mapping[str, Had]] = MappingProxyType(
    {
        "ml4h2024": {
            "nih": _NIH,
            "chexpert": Had(191_027, "chexpert", 13),
            "mimic": Had(243_324, "cxr-lt", 20),
        },
        "arxiv2301.06683v1": _WHOLE,
        "arxiv2303.06180": _WHOLE,
    }
)
"""Key of `published_results.SOURCES` -> data set -> what it was there."""


def ours(found: DataSet) -> Had:
    """What a data set of ours is used as."""
    policy = found.site.policy
    by_class = [f"{name} {each}" for name, each in sorted(policy.by_class.items())]
    uncertain = ", ".join([policy.uncertain, *by_class, f"blank {policy.blank}"])
    views = "frontal" if found.site.dataset == "nih" else found.site.views
    classes = len(set(found.classes) & set(UNION_CLASSES))
    return Had(found.images, found.site.dataset, classes, views, uncertain)


def differences(source: str, had: Mapping[str, Had]) -> dict[str, str]:
    """Data set -> ours and theirs in words, of each that is not what it was in a source."""
    theirs = PUBLISHED[source]
    return {
        name: f"here {here}; there {theirs[name]}"
        for name, here in had.items()
        if here != theirs[name]
    }
