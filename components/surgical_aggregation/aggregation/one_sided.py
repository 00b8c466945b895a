"""One-sided classes: all of a site's training labels are equal, so it cannot teach them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSITIVE, NEGATIVE, LABELLED = "positive", "negative", "labelled"


def lacking(classes: Sequence[str], labels: NDArray[np.floating]) -> dict[str, str]:
    """Classes without a positive, a negative or any label among a site's training labels.

    The column of such a class learns one answer for every image, or nothing.

    Args:
        classes: Names of the columns of `labels`.
        labels: 1, 0, a number between (smoothed: above 0.5 it is a positive) or NaN (not labelled),
            shape (images, classes).

    Returns:
        Class -> the kind of image that it lacks: `POSITIVE`, `NEGATIVE`, or `LABELLED` (both).

    Example:
        >>> lacking(["Edema", "Mass"], np.array([[1.0, 0.0], [0.0, 0.0]]))
        {'Mass': 'positive'}
    """
    positives, negatives = (
        np.atleast_1d(present.any(axis=0)) for present in (labels > 0.5, labels <= 0.5)
    )
    return {
        name: NEGATIVE if positive else POSITIVE if negative else LABELLED
        for name, positive, negative in zip(classes, positives, negatives, strict=True)
        if not (positive and negative)
    }


def fault(lacks: object, classes: Collection[str]) -> str | None:
    """Why a site's report of one-sided classes is invalid; None: it is valid.

    Args:
        lacks: The value received, like a result of `lacking`.
        classes: Classes that the site trained.
    """
    if not isinstance(lacks, Mapping):
        return f"what classes lack must be given by class; got {type(lacks).__name__}"
    for name, what in lacks.items():
        if name not in classes or what not in (POSITIVE, NEGATIVE, LABELLED):
            return (
                f"of the classes trained, each may lack {POSITIVE!r}, {NEGATIVE!r} or "
                f"{LABELLED!r}; got {name!r:.60}: {what!r:.60}"
            )
    return None


def never_learned(facts: Mapping[str, Any]) -> str | None:
    """Why a class was never learned, from its facts in a manifest; None: some site could teach it.

    Args:
        facts: `sites` that trained the class, and `lacking`: site -> kind of image that it lacked.
    """
    by_site = facts.get("lacking", {})
    lacks = {by_site.get(site) for site in facts.get("sites", ())} or {*by_site.values()}
    if not lacks or None in lacks:
        return None
    kinds = [kind for kind in (POSITIVE, NEGATIVE) if kind in lacks] or [LABELLED]
    if len(kinds) == 1:
        return f"no site had a {kinds[0]} image"
    return "no site had both a positive and a negative image"
