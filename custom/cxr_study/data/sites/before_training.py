"""What is said of sites' labels before a model is trained on them together."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cxr_study.data.labels.class_overlap import SiteClasses, class_report
from cxr_study.data.labels.label_table import classes, one_sided
from cxr_study.data.sites.site_data import SiteLabels, check_disjoint, labelled_classes
from cxr_study.data.sites.site_file import SiteFile


def notes(sites: Sequence[SiteLabels]) -> list[str]:
    """What people should know before they start, as far as all site files are at hand.

    Notes of the readers, classes that lack a kind of label, patient ids that two hospitals have,
    and classes of different sites that may be one finding.

    Raises:
        SplitError: A patient is at two of the sites; see `check_disjoint`.
    """
    shared = check_disjoint(sites)
    own = [
        f"{each.site.site}: {note}"
        for each in sites
        for note in (
            *each.read.attrs["notes"],
            *one_sided(each.table[each.table["split"] == "train"]),
        )
    ]
    return [*own, *shared, *_look_alikes(sites)]


def site_classes(site: SiteFile, read: pd.DataFrame) -> SiteClasses:
    """What a site says about classes, by its file and its labels as read.

    Raises:
        SiteFileError: See `labelled_classes`.
    """
    columns = classes(read)
    labelled = labelled_classes(site, columns)
    return SiteClasses(site.site, site.dataset, labelled, tuple(columns), site.distinct)


def _look_alikes(sites: Sequence[SiteLabels]) -> list[str]:
    report = class_report([site_classes(each.site, each.read) for each in sites])
    return [
        f"'{pair.name}' ({', '.join(pair.sites)}) and '{pair.other}' "
        f"({', '.join(report.holders[pair.other])}) may be one finding: {pair.reason}; "
        f"{pair.suggestion}"
        for pair in report.near_duplicates
        if pair.other in report.holders
    ]
