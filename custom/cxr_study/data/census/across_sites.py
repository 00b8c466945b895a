"""Sites compared with each other by what they share alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import jensenshannon

from cxr_study.data.census.image_hashes import EqualImages, ImageHashes, equal_images
from cxr_study.data.census.pixels import (
    Axes,
    Moments,
    Rectangle,
    Thumbnails,
    common_axes,
    rectangles,
)
from cxr_study.data.census.shareable_census import CensusError, SharedCensus


@dataclass(frozen=True, eq=False)
class Across:
    """The shared censuses of sites, compared.

    Attributes:
        sites: At least one.
        plane: In which the thumbnails of those that share their moments differ most; None where
            nobody does.
        rectangles: Site -> counts of its images in the plane, of sites at hand.
        distances: Jensen-Shannon distances of the histograms of grey values of the sites that
            share one, shape (n, n): 0 the same, 1 no grey value in common.
        equal: Images at two sites, of those whose images are at hand or that share hashes; names
            of images that are not at hand are "".
    """

    sites: Sequence[SharedCensus]
    plane: Axes | None
    rectangles: Mapping[str, Sequence[Rectangle]]
    distances: np.ndarray
    equal: Sequence[EqualImages]

    @property
    def intensities(self) -> dict[str, Sequence[int]]:
        """Histograms of grey values of the sites that share one."""
        return {s.site: s.intensity for s in self.sites if s.intensity is not None}

    @property
    def features(self) -> dict[str, Moments]:
        """Moments of the thumbnails of the sites that share them."""
        return {s.site: s.features for s in self.sites if s.features is not None}

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain JSON values, without the sites themselves."""
        axes = self.plane and {name: value.tolist() for name, value in vars(self.plane).items()}
        return {
            "axes": axes,
            "rectangles": {
                site: [asdict(part) for part in parts] for site, parts in self.rectangles.items()
            },
            "intensity_distances": {
                "sites": list(self.intensities),
                "distances": self.distances.round(4).tolist(),
            },
            "equal_images": [asdict(pair) for pair in self.equal],
        }


def compare(
    sites: Sequence[SharedCensus],
    thumbnails: Mapping[str, Thumbnails],
    hashes: Sequence[ImageHashes] = (),
) -> Across:
    """Compare sites by Jensen-Shannon distance (Endres and Schindelin, IEEE Trans IT 49, 2003).

    Args:
        sites: At least one, with different names.
        thumbnails: Of the sites whose images are at hand: they count them in the common plane.
        hashes: Of the sites whose images are at hand; of others, what they share counts.

    Raises:
        CensusError: Two sites have the same name.
    """
    names = [site.site for site in sites]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise CensusError(f"sites need different names; more than one is called '{twice[0]}'.")
    across = Across(sites, None, {}, np.empty((0, 0)), ())
    at_hand = {each.site for each in hashes}
    told = [
        ImageHashes(site.site, unknown := [""] * len(shared), shared, unknown)
        for site in sites
        if (shared := site.image_hashes) is not None and site.site not in at_hand
    ]
    greys = [np.array(counts, float) for counts in across.intensities.values()]
    distances = np.array([[jensenshannon(a, b, base=2) for b in greys] for a in greys])
    plane = common_axes(list(across.features.values())) if across.features else None
    counted = {
        site.site: rectangles(plane.project(own.values), own.patients, site.min_count)
        for site in sites
        if plane is not None and site.features is not None
        if (own := thumbnails.get(site.site)) is not None
    }
    return Across(
        sites,
        plane,
        counted,
        distances.reshape(len(greys), len(greys)),
        equal_images([*hashes, *told]),
    )
