"""The weight of a site: strategy f for the body, strategy g for each column of the head.

A weighting is called with the site's name, its `SiteResult` (including metrics), and the class of
the column, or None for the body; it returns a weight > 0. Installed packages can offer further ones
as entry points of the group `GROUP`; a job can also name one by class path. See
`extras.find_part`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from surgical_aggregation.extras import find_part

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.site_result import SiteResult

    Weighting = Callable[[str, SiteResult, str | None], float]

GROUP = "surgical_aggregation.weightings"

SITE_WEIGHTINGS = ("mean", "samples")
"""Weightings of a site as a whole: for its body, or for everything that it sends."""

HEAD_WEIGHTINGS = ("mean", "samples", "positives")


class WeightingError(ValueError):
    """A site did not report what a weighting needs."""


def find(argument: str, weighting: str | Weighting, own: tuple[str, ...]) -> Weighting:
    """The weighting that a setting names, with those in `own` built in; raises `PartError`."""
    return find_part(argument, weighting, GROUP, {name: _OWN[name] for name in own}, Callable)


def mean(site: str, result: SiteResult, name: str | None) -> float:
    """Equal weights for all sites, as in the papers."""
    return 1.0


def samples(site: str, result: SiteResult, name: str | None) -> float:
    """Weight a site by the number of images that it trained on.

    Raises:
        WeightingError: The site did not report their number.
    """
    if result.samples is None:
        raise WeightingError(
            "weighting by 'samples' needs the number of images that a site trained on; got none. "
            "Does the site's executor set NUM_STEPS_CURRENT_ROUND in its result?"
        )
    return result.samples


def positives(site: str, result: SiteResult, name: str | None) -> float:
    """Weight a site's column by its number of positive labels of the class.

    Raises:
        WeightingError: The site did not report them, or has none.
    """
    if result.positives is None or name is None:
        raise WeightingError(
            "head_weighting 'positives' needs every site's positives per class; got none. Set "
            "report_counts if the sites' policies permit it, or use 'mean' or 'samples'."
        )
    if not result.positives[name]:
        raise WeightingError(
            f"a site without a positive of {[name]} cannot train it with head_weighting "
            "'positives'. Remove the class at this site, or use 'mean'."
        )
    return result.positives[name]


_OWN: dict[str, Weighting] = {"mean": mean, "samples": samples, "positives": positives}
