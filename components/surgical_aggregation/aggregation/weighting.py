"""The weight of a site: strategy f for the body, strategy g for each column of the head.

A weighting is called with the site's name, its `SiteResult` (metrics among it), and the class whose
column is weighed, or None for the body. Further ones come from installed packages, as entry points
of the group `GROUP`, or by their class path; see `extras.part`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from surgical_aggregation.extras import part

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.site_result import SiteResult

    Weighting = Callable[[str, SiteResult, str | None], float]

GROUP = "surgical_aggregation.weightings"

SITE_WEIGHTINGS = ("mean", "samples")
"""Of a site as a whole: its body, or all that it sends."""

HEAD_WEIGHTINGS = ("mean", "samples", "positives")


class WeightingError(ValueError):
    """A site did not report what a weighting needs."""


def find(argument: str, weighting: str | Weighting, own: tuple[str, ...]) -> Weighting:
    """The weighting that a setting names, ours among the `own`; raises `PartError`."""
    return part(argument, weighting, GROUP, {name: _OWN[name] for name in own})


def mean(site: str, result: SiteResult, name: str | None) -> float:
    """Every site counts the same, as in the papers."""
    return 1.0


def samples(site: str, result: SiteResult, name: str | None) -> float:
    """A site counts by the images that it trained on.

    Raises:
        WeightingError: The site did not report their number.
    """
    if result.samples is None:
        raise WeightingError(
            "weighting by 'samples' needs the number of images each site trained on; none came. "
            "Does the site's executor set NUM_STEPS_CURRENT_ROUND in its result?"
        )
    return result.samples


def positives(site: str, result: SiteResult, name: str | None) -> float:
    """A site counts for a class by its positive labels of it.

    Raises:
        WeightingError: The site did not report them, or has none.
    """
    if result.positives is None or name is None:
        raise WeightingError(
            "head_weighting 'positives' needs every site's positives per class; none came. "
            "Set report_counts where the sites' policies let counts out, or weigh by 'mean' or "
            "'samples'."
        )
    if not result.positives[name]:
        raise WeightingError(
            f"a site without a positive of {[name]} cannot train it under "
            "head_weighting 'positives'. Take the class out of its site file, or weigh by "
            "'mean'."
        )
    return result.positives[name]


_OWN: dict[str, Weighting] = {"mean": mean, "samples": samples, "positives": positives}
