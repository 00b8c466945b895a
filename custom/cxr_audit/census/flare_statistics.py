"""The census of a site as statistics of FLARE."""

from dataclasses import replace
from functools import cached_property

import numpy as np
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.statistics_spec import DataType, Feature, Statistics

from cxr_audit.census.flare_counts import DATASET, to_counts
from cxr_audit.census.take_census import take_census
from cxr_study.data.labels.label_table import classes
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import find_site_file, read_site_file
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import (
    NO_POLICY,
    SitePolicy,
    site_policy,
    withheld,
)
from surgical_aggregation.site.local_notes import note_error

MIN_COUNT = 10
"""Smallest number of patients behind a count. Not a job's: two limits would tell a small count."""
IMAGE_SIZE = 64
"""Side of the images when they are decoded, pixels; equal in all jobs for the same reason."""


class CensusStatistics(Statistics):
    """Counts of a site's data without those that are too small to share.

    Runs on the client, behind FLARE's `StatisticsExecutor`. It holds only what a site may share, so
    no privacy filter of FLARE has anything to remove (`MinCountCleanser` checks a feature's total
    alone). A site with a policy (see `site_policy`) counts nothing unless it sets 'report_counts',
    and then only the classes that it shares. Errors are written to the site's notes alone (see
    `local_notes`).

    Args:
        site: Name of the site; its site file is <sites>/<site>.yaml.
        sites: Folder of site files, at the site; see `find_site_file`.
    """

    def __init__(self, site: str, sites: str | None = None):
        super().__init__()
        self.site = site
        self.sites = sites
        self._fl_ctx: FLContext | None = None

    def initialize(self, fl_ctx: FLContext) -> None:
        """Keep the context, which has the site's policy; errors are raised with the counts."""
        self._fl_ctx = fl_ctx

    def features(self) -> dict[str, list[Feature]]:
        """Features of the one data set; the counts are computed on the first call."""
        return {DATASET: [Feature(name, DataType.INT) for name in self._counts]}

    def count(self, dataset_name: str, feature_name: str) -> int:
        """Count of a feature.

        Args:
            dataset_name: `DATASET`.
            feature_name: One of `features`.
        """
        return self._counts[feature_name]

    @cached_property
    def _counts(self) -> dict[str, int]:
        """Feature -> count; errors are noted at the site, and the server gets no reason."""
        if self._fl_ctx is None:
            return self._counted(NO_POLICY, self.site)
        try:
            return self._counted(site_policy(self._fl_ctx), self._fl_ctx.get_identity_name())
        except Exception as error:  # which FLARE would put into the error log
            note = note_error(self._fl_ctx, "this site counts nothing", error)
            raise SiteError(note) from None

    def _counted(self, policy: SitePolicy, identity: str) -> dict[str, int]:
        """Take the census under the site's policy."""
        if not policy.report_counts:
            raise SiteError(
                "a census needs 'report_counts' true in this site's local/privacy.json; it is not."
            )
        file = find_site_file(self.site, self.sites, policy, identity)
        labels = load_labels(read_site_file(file))
        table = labels.table
        labelled = list(classes(table))
        train = table.loc[table["split"] == "train", labelled]
        stay = withheld(policy, labelled, lambda: train.to_numpy(np.float32))
        labels = replace(labels, table=table.drop(columns=list(stay)))
        return to_counts(take_census(labels, IMAGE_SIZE, MIN_COUNT).shared)
