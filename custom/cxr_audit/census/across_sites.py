"""Comparison of sites by their shared censuses alone, and images that are at two of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import pairwise_distances_argmin_min

from cxr_audit.census.pixels import ImageHashes
from cxr_audit.census.shareable_census import CensusError, SharedCensus

NEAR = 32
"""Largest number of bits in which the hashes of two images that count as equal may differ."""


@dataclass(frozen=True)
class EqualImages:
    """An image that is at two sites.

    Attributes:
        site: Name of the one site.
        image: Name of the image there; "" where the image itself is not available.
        other_site: Name of the other site.
        other_image: Name of the image there, likewise.
        bits: Number of bits in which the hashes differ, of `pixels.BITS`.
        exact: Whether the decoded pixels are known to be the same.
    """

    site: str
    image: str
    other_site: str
    other_image: str
    bits: int
    exact: bool


@dataclass(frozen=True, eq=False)
class Across:
    """The shared censuses of sites, compared.

    Attributes:
        sites: At least one.
        distances: Jensen-Shannon distances of the histograms of grey values of the sites that
            share one, shape (n, n): 0 the same, 1 no grey value in common.
        equal: Images at two sites, of the sites whose images are available or that share hashes.
    """

    sites: Sequence[SharedCensus]
    distances: np.ndarray
    equal: Sequence[EqualImages]

    @property
    def intensities(self) -> dict[str, Sequence[int]]:
        """Site -> histogram of grey values, of the sites that share one."""
        return {s.site: s.intensity for s in self.sites if s.intensity is not None}

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain JSON values, without the sites themselves.

        Returns:
            "intensity_distances" (sites, and distances rounded to 4 decimals) and "equal_images".
        """
        return {
            "intensity_distances": {
                "sites": list(self.intensities),
                "distances": self.distances.round(4).tolist(),
            },
            "equal_images": [asdict(pair) for pair in self.equal],
        }


def compare(sites: Sequence[SharedCensus], hashes: Sequence[ImageHashes] = ()) -> Across:
    """Compare sites by their histograms of grey values and by hashes of their images.

    Args:
        sites: At least one, with different names.
        hashes: Of the sites whose images are available; of others the hashes that they share.

    Raises:
        CensusError: Two sites have the same name.

    Source:
        Jensen-Shannon distance: Endres and Schindelin, A new metric for probability distributions,
        IEEE Transactions on Information Theory 49, 2003.
    """
    names = [site.site for site in sites]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise CensusError(f"sites need different names; more than one is called '{twice[0]}'.")
    at_hand = {each.site for each in hashes}
    of_others = [
        ImageHashes(site.site, unknown := [""] * len(shared), shared, unknown)
        for site in sites
        if (shared := site.image_hashes) is not None and site.site not in at_hand
    ]
    greys = [np.array(s.intensity, float) for s in sites if s.intensity is not None]
    distances = np.array([[jensenshannon(a, b, base=2) for b in greys] for a in greys])
    return Across(
        sites, distances.reshape(len(greys), len(greys)), equal_images([*hashes, *of_others])
    )


def equal_images(sites: Sequence[ImageHashes]) -> list[EqualImages]:
    """Find images that are at two sites.

    Args:
        sites: Hashes of at least two sites.

    Returns:
        Each image of a site with its nearest at another one, where their hashes differ in at most
        `NEAR` bits; exact copies first, then the most similar.
    """
    found = []
    for one, other in combinations(sites, 2):
        # Of zeros and ones the squared distance is the number of bits that differ.
        ours, theirs = (np.unpackbits(s.values, axis=1).astype(np.float32) for s in (one, other))
        pairs = pairwise_distances_argmin_min(ours, theirs, metric="sqeuclidean")
        for index, (nearest, bits) in enumerate(zip(*pairs, strict=True)):
            if bits <= NEAR:
                image, copy = one.images[index], other.images[nearest]
                exact = "" != one.digests[index] == other.digests[nearest]
                found.append(EqualImages(one.site, image, other.site, copy, int(bits), exact))
    return sorted(found, key=lambda pair: (not pair.exact, pair.bits, pair.site, pair.image))
