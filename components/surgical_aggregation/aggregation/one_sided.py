"""Classes that a site cannot teach: all of its training labels of them are the same."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSITIVE, NEGATIVE = "positive", "negative"


def lacking(classes: Sequence[str], labels: NDArray[np.floating]) -> dict[str, str]:
    """Which classes have no positive, or no negative, among a site's training labels.

    Such a column learns to say no, or yes, to every image.

    Args:
        classes: Of the columns of `labels`.
        labels: 1, 0, a number between (smoothed: above 0.5 it is a positive) or NaN (not labelled),
            shape (images, classes).

    Returns:
        Class -> `POSITIVE` or `NEGATIVE`, whichever it lacks. A class without any label, which no
        image trains, is left out.

    Example:
        >>> lacking(["Edema", "Mass"], np.array([[1.0, 0.0], [0.0, 0.0]]))
        {'Mass': 'positive'}
    """
    positives, negatives = (np.atleast_1d(of.any(axis=0)) for of in (labels > 0.5, labels < 0.5))
    return {
        name: NEGATIVE if positive else POSITIVE
        for name, positive, negative in zip(classes, positives, negatives, strict=True)
        if positive != negative
    }


def fault(told: object, classes: Collection[str]) -> str | None:
    """Why what a site says that its classes lack cannot be used; None: it can.

    Args:
        told: What came, as of `lacking`.
        classes: Those that the site trained.
    """
    if not isinstance(told, Mapping):
        return f"what classes lack must be given by class; got {type(told).__name__}"
    for name, what in told.items():
        if name not in classes or what not in (POSITIVE, NEGATIVE):
            return (
                f"of the classes trained, each may lack {POSITIVE!r} or {NEGATIVE!r}; got "
                f"{name!r:.60}: {what!r:.60}"
            )
    return None


def never_learned(facts: Mapping[str, Any]) -> str | None:
    """Why a class was never learned, by its facts in a manifest; None: some site could teach it.

    Args:
        facts: `sites` that trained the class, and `lacking`: site -> what it lacked there.
    """
    told = facts.get("lacking", {})
    lacks = {told.get(site) for site in facts.get("sites", ())}
    if not lacks or None in lacks:
        return None
    kinds = [kind for kind in (POSITIVE, NEGATIVE) if kind in lacks]
    if len(kinds) == 1:
        return f"no site had a {kinds[0]} image"
    return "no site had both a positive and a negative image"
