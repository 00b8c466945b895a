"""Sites compared with each other by what they share alone."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import jensenshannon

from cxr_audit.census.image_hashes import EqualImages, ImageHashes, equal_images
from cxr_audit.census.shareable_census import CensusError, SharedCensus


@dataclass(frozen=True, eq=False)
class Across:
    """The shared censuses of sites, compared.

    Attributes:
        sites: At least one.
        distances: Jensen-Shannon distances of the histograms of grey values of the sites that
            share one, shape (n, n): 0 the same, 1 no grey value in common.
        equal: Images at two sites, of those whose images are at hand or that share hashes; names
            of images that are not at hand are "".
    """

    sites: Sequence[SharedCensus]
    distances: np.ndarray
    equal: Sequence[EqualImages]

    @property
    def intensities(self) -> dict[str, Sequence[int]]:
        """Histograms of grey values of the sites that share one."""
        return {s.site: s.intensity for s in self.sites if s.intensity is not None}

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain JSON values, without the sites themselves."""
        return {
            "intensity_distances": {
                "sites": list(self.intensities),
                "distances": self.distances.round(4).tolist(),
            },
            "equal_images": [asdict(pair) for pair in self.equal],
        }


def compare(sites: Sequence[SharedCensus], hashes: Sequence[ImageHashes] = ()) -> Across:
    """Compare sites by Jensen-Shannon distance (Endres and Schindelin, IEEE Trans IT 49, 2003).

    Args:
        sites: At least one, with different names.
        hashes: Of the sites whose images are at hand; of others, what they share counts.

    Raises:
        CensusError: Two sites have the same name.
    """
    names = [site.site for site in sites]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise CensusError(f"sites need different names; more than one is called '{twice[0]}'.")
    at_hand = {each.site for each in hashes}
    told = [
        ImageHashes(site.site, unknown := [""] * len(shared), shared, unknown)
        for site in sites
        if (shared := site.image_hashes) is not None and site.site not in at_hand
    ]
    greys = [np.array(s.intensity, float) for s in sites if s.intensity is not None]
    distances = np.array([[jensenshannon(a, b, base=2) for b in greys] for a in greys])
    return Across(sites, distances.reshape(len(greys), len(greys)), equal_images([*hashes, *told]))
