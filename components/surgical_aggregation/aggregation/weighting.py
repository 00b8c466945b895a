"""The weight of a site: strategy f for the body, strategy g for each column of the head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.result_checks import Contribution

SITE_WEIGHTINGS = ("mean", "samples")
"""Of a site as a whole: its body, or all that it sends."""

HEAD_WEIGHTINGS = ("mean", "samples", "positives")


class WeightingError(ValueError):
    """A weighting is unknown, or a site did not report what it needs."""


def check(argument: str, weighting: str, known: tuple[str, ...]) -> None:
    """Raise `WeightingError` for a value of `argument` that is none of `known`."""
    if weighting not in known:
        raise WeightingError(f"{argument} must be one of {known}; got {weighting!r}.")


def site_weight(weighting: str, contribution: Contribution) -> float:
    """Weight of a site as a whole: 1 ("mean", as in the papers) or the images it trained on.

    Raises:
        WeightingError: The site did not report the number of images.
    """
    if weighting == "mean":
        return 1.0
    if contribution.samples is None:
        raise WeightingError(
            "weighting by 'samples' needs the number of images each site trained on; none came. "
            "Does the site's executor set NUM_STEPS_CURRENT_ROUND in its result?"
        )
    return contribution.samples


def head_weights(weighting: str, contribution: Contribution) -> Mapping[str, float]:
    """Weight of a site for every class it labels: "mean" (the papers), "samples" or "positives".

    The last are the site's positive labels of that class.

    Raises:
        WeightingError: The site did not report the count that the weighting needs, or it is 0.
    """
    if weighting == "positives":
        if contribution.positives is None:
            raise WeightingError(
                "head_weighting 'positives' needs every site's positives per class; none came. "
                "Set report_counts where the sites' policies let counts out, or weigh by 'mean' or "
                "'samples'."
            )
        none = sorted(name for name in contribution.columns if not contribution.positives[name])
        if none:
            raise WeightingError(
                f"a site without a positive of {none} cannot train it under "
                "head_weighting 'positives'. Take the class out of its site file, or weigh by "
                "'mean'."
            )
        return {name: contribution.positives[name] for name in contribution.columns}
    weight = site_weight(weighting, contribution)
    return dict.fromkeys(contribution.columns, weight)
