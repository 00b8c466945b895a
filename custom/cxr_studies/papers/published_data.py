"""The data that the papers used, and how ours differ: then results are not compared.

Version 1 and FedFBN state 224,316 images of CheXpert; their splits have 223,414, as train.csv has.
None of the papers states how blank labels count; CheXpert's authors count them as negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from cxr_studies.plan.site_files import DataSet
from cxr_study.data.labels.vocabulary import UNION_CLASSES


@dataclass(frozen=True)
class DataUse:
    """How a data set was used.

    Attributes:
        images: Of all splits together.
        labels: Whose labels: the reader, see `readers.DATASETS`.
        classes: Number of the 20 classes of NIH and CheXpert that it has.
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


PUBLISHED: Mapping[str, Mapping[str, DataUse]] = {
    source: {name: DataUse(**each) for name, each in of.items()}
    for source, of in yaml.safe_load(
        Path(__file__).with_name("published_data.yaml").read_text(encoding="utf-8")
    ).items()
}
"""Key of `published_results.SOURCES` -> data set -> how it was used there."""


def data_use_of(found: DataSet) -> DataUse:
    """How a data set of ours is used.

    Args:
        found: The data set as read.
    """
    policy = found.site.policy
    by_class = [f"{name} {each}" for name, each in sorted(policy.by_class.items())]
    uncertain = ", ".join([policy.uncertain, *by_class, f"blank {policy.blank}"])
    views = "frontal" if found.site.dataset == "nih" else found.site.views
    classes = len(set(found.classes) & set(UNION_CLASSES))
    return DataUse(found.images, found.site.dataset, classes, views, uncertain)


def differences(source: str, data_use: Mapping[str, DataUse]) -> dict[str, str]:
    """Differences between our use of data sets and a paper's.

    Args:
        source: Key of `PUBLISHED`.
        data_use: Data set -> how ours is used.

    Returns:
        Data set -> both uses in words, for each that differs.
    """
    theirs = PUBLISHED[source]
    return {
        name: f"here {here}; there {theirs[name]}"
        for name, here in data_use.items()
        if here != theirs[name]
    }
