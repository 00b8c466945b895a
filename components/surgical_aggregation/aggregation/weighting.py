"""The weight of a site: strategy f for the body, strategy g for each column of the head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Variables
    from surgical_aggregation.aggregation.result_checks import Contribution

SITE_WEIGHTINGS = ("mean", "samples")
"""Those that need nothing of other sites."""

BODY_WEIGHTINGS = (*SITE_WEIGHTINGS, "classes", "conflict_averse")
HEAD_WEIGHTINGS = ("mean", "samples", "positives")


class WeightingError(ValueError):
    """A weighting is unknown, or a site did not report what it needs."""


def check(argument: str, weighting: str, known: tuple[str, ...]) -> None:
    """Raise `WeightingError` for a value of `argument` that is none of `known`."""
    if weighting not in known:
        raise WeightingError(f"{argument} must be one of {known}; got {weighting!r}.")


def check_counts(body_weighting: str, head_weighting: str, contribution: Contribution) -> None:
    """Raise `WeightingError` where a site did not report what the weightings need of it."""
    if body_weighting == "samples":
        _samples(contribution)
    if body_weighting == "classes":
        _taught([contribution.columns.keys()])
    head_weights(head_weighting, contribution)


def body_weights(
    weighting: str, contributions: Sequence[Contribution], start: Variables
) -> list[float]:
    """Weight of each site for its body.

        mean             1, as in the papers
        samples          images trained on
        classes          sum over its classes of 1 / (sites that label the class): how much of the
                         union it teaches, 1 where all sites label the same
        conflict_averse  see `conflict_averse`; not the mean even where all sites label the same

    Args:
        weighting: One of these.
        contributions: What the sites sent.
        start: Trained variables of the body that the round began with, for "conflict_averse".

    Raises:
        WeightingError: A site did not report what the weighting needs.
    """
    if weighting == "samples":
        return [_samples(contribution) for contribution in contributions]
    if weighting == "classes":
        return _taught([contribution.columns.keys() for contribution in contributions])
    if weighting == "conflict_averse":
        from surgical_aggregation.aggregation import conflict_averse  # its maths need NumPy

        bodies = [contribution.body for contribution in contributions]
        return conflict_averse.weights(conflict_averse.products(bodies, start))
    return [1.0] * len(contributions)


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
    weight = 1.0 if weighting == "mean" else _samples(contribution)
    return dict.fromkeys(contribution.columns, weight)


def _taught(classes: Sequence[Collection[str]]) -> list[float]:
    if not all(classes):
        raise WeightingError(
            "body_weighting 'classes' needs columns of every site; one sent none. Weigh by 'mean' "
            "or 'samples' where heads stay at the sites."
        )
    holders = Counter(name for own in classes for name in own)
    scale = Fraction(len(classes), len(holders))
    # Exact, so that sites with the same classes weigh the same to the last bit.
    return [float(scale * sum(Fraction(1, holders[name]) for name in own)) for own in classes]


def _samples(contribution: Contribution) -> float:
    if contribution.samples is None:
        raise WeightingError(
            "weighting by 'samples' needs the number of images each site trained on; none came. "
            "Does the site's executor set NUM_STEPS_CURRENT_ROUND in its result?"
        )
    return contribution.samples
