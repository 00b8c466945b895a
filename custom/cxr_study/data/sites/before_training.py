"""What is said of sites' labels before a model is trained on them together."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cxr_study.data.labels.class_overlap import SiteClasses, holders, near_duplicates
from cxr_study.data.labels.label_table import classes, one_sided
from cxr_study.data.sites.site_data import SiteLabels, check_disjoint, labelled_classes
from cxr_study.data.sites.site_file import SiteFile


def notes(sites: Sequence[SiteLabels]) -> list[str]:
    """What people should know before they start, as far as all site files are at hand.

    Notes of the readers, classes that lack a kind of label, patient ids that two hospitals have,
    and classes of different sites that may be one finding.

    Raises:
        InputError: A patient is at two of the sites; see `check_disjoint`.
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
        InputError: See `labelled_classes`.
    """
    columns = classes(read)
    labelled = labelled_classes(site, columns)
    return SiteClasses(site.site, site.dataset, labelled, tuple(columns), site.distinct)


def _look_alikes(sites: Sequence[SiteLabels]) -> list[str]:
    named = [site_classes(each.site, each.read) for each in sites]
    at = holders(named)
    return [
        f"'{pair.name}' ({', '.join(pair.sites)}) and '{pair.other}' "
        f"({', '.join(at[pair.other])}) may be one finding: {pair.reason}; {pair.suggestion}"
        for pair in near_duplicates(named)
        if pair.other in at
    ]
