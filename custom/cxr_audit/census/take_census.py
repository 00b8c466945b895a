"""Take the census of a site whose data are available, and the part of it to share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cxr_audit.census import census, pixels
from cxr_audit.census.shareable_census import SharedCensus, share
from cxr_study.common.progress import Report
from cxr_study.data.labels.label_table import classes
from cxr_study.data.sites.site_data import SiteLabels, prepare


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample picture.

    Attributes:
        pixels: uint8 (size, size).
        present: Classes that it is positive for.
    """

    pixels: np.ndarray
    present: Sequence[str]


@dataclass(frozen=True, eq=False)
class SiteCensus:
    """The census of a site whose data are available.

    Attributes:
        census: Complete; stays at the site.
        shared: The part that may be shared.
        samples: Sample pictures; they stay at the site.
        hashes: Of all images.
    """

    census: census.Census
    shared: SharedCensus
    samples: list[Sample]
    hashes: pixels.ImageHashes


def take_census(
    labels: SiteLabels,
    size: int,
    min_count: int,
    progress: Report | None = None,
    share_hashes: bool = False,
) -> SiteCensus:
    """Decode all images of a site, at `size` x `size` pixels, and count.

    Args:
        labels: The site's.
        size: Side of the images, pixels.
        min_count: See `share`.
        progress: Called as progress(done, total), first while decoding, then while measuring.
        share_hashes: Whether hashes of the images are shared, by which others find equal ones.

    Raises:
        CensusError: The site has too few patients to share anything.
    """
    table, prepared = prepare(labels, size, progress)
    counted = census.count_data(labels, table, prepared.index)
    usable = (prepared.index["status"] == "ok").to_numpy()
    table, rows = table[usable], prepared.index["row"].to_numpy()[usable]
    intensity = pixels.measure(prepared.pixels, rows, progress)
    found = pixels.hash_images(labels.site.site, table["image"].tolist(), prepared.pixels, rows)
    return SiteCensus(
        counted,
        share(counted, min_count, intensity, found.values if share_hashes else None),
        choose_samples(table, prepared.pixels, rows),
        found,
    )


def choose_samples(
    table: pd.DataFrame, pixels: np.ndarray, rows: np.ndarray, number: int = 8
) -> list[Sample]:
    """Choose a picture for each of the rarest classes, and one without any.

    For a class that no chosen picture shows, it is the one with the fewest classes, the first of
    these in the table.

    Args:
        table: Label table of usable images.
        pixels: uint8 (m, size, size).
        rows: Row of each image of the table in `pixels`.
        number: Largest number of pictures.
    """
    labelled = classes(table)
    positive = (table[labelled] == 1).to_numpy()
    present = positive.sum(axis=1)
    chosen: list[int] = []
    for column in np.argsort(positive.sum(axis=0), kind="stable"):
        with_class = np.flatnonzero(positive[:, column])
        if len(chosen) < number - 1 and len(with_class) and not positive[chosen, column].any():
            chosen.append(int(with_class[present[with_class].argmin()]))
    chosen += np.flatnonzero(present == 0)[:1].tolist()
    return [
        Sample(
            np.asarray(pixels[rows[place]]), [labelled[c] for c in np.flatnonzero(positive[place])]
        )
        for place in chosen
    ]
