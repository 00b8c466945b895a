"""Takes the census of a site whose data are at hand, and the part of it that others may see."""

from dataclasses import dataclass

import numpy as np

from cxr_study.common.progress import Report
from cxr_study.data.census import census, pixels
from cxr_study.data.census import sample_pictures as samples
from cxr_study.data.census.shareable_census import SharedCensus, share
from cxr_study.data.sites.site_data import SiteLabels, prepare


@dataclass(frozen=True, eq=False)
class SiteCensus:
    """What is known of a site that is at hand.

    Attributes:
        census: Complete.
        shared: What others would see of it.
        intensity: Mean histogram of grey values; see `pixels.measure`.
        samples: Pictures.
        thumbnails: Of all images.
    """

    census: census.Census
    shared: SharedCensus
    intensity: np.ndarray
    samples: list[samples.Sample]
    thumbnails: pixels.Thumbnails


def take(
    labels: SiteLabels, size: int, min_count: int, progress: Report | None = None
) -> SiteCensus:
    """Look at all images of a site, and count.

    Args:
        labels: What `site_data.load_labels` returns.
        size: Side of the images that are looked at, pixels.
        min_count: Smallest number of patients behind a count that is shared, at least 2.
        progress: Called as progress(done, total), first with images decoded, then looked at.

    Raises:
        CensusError: The site has too few patients to share anything.
    """
    table, prepared = prepare(labels, size, progress)
    counted = census.take(labels, table, prepared.index)
    usable = (prepared.index["status"] == "ok").to_numpy()
    table, rows = table[usable], prepared.index["row"].to_numpy()[usable]
    intensity, values = pixels.measure(prepared.pixels, rows, progress)
    features = pixels.moments(values) if len(rows) else None
    return SiteCensus(
        counted,
        share(counted, min_count, intensity, features),
        intensity,
        samples.choose(table, prepared.pixels, rows),
        pixels.Thumbnails(values, table["patient"].tolist()),
    )
