"""Iterative stratification: patients into parts that have equally much of every class.

Sechidis, Tsoumakas and Vlahavas, ECML PKDD 2011: the rarest class is dealt out first, each patient
to the part that lacks most of it. Two things are added: parts have exact sizes, and before anything
else each part gets a patient of every class that has enough of them, so that rounding leaves none
without.
"""

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np

_NEAR = 0.01  # of all images: a part that is so near to its share of them is left as it is
_KINDS = 300  # of patients of a part that an exchange is sought among
_OFF = 2  # patients of a class that a part may have more or less than its share


def stratify(
    present: np.ndarray, sizes: Sequence[int] | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Put each patient in a part.

    Args:
        present: Whether a patient has a class, bool (patients, classes).
        sizes: Patients of each part; together they are all patients.
        rng: Decides between equals.

    Returns:
        Number of the part of each patient, int64 (patients,). A class with as many patients as
        there are parts with room has one in each, unless classes stand in each other's way.
    """
    part = np.full(len(present), -1)
    room = np.array(sizes, int)
    lacking = present.sum(axis=0)[:, None] * room / max(len(present), 1)  # (classes, parts)
    order = rng.permutation(len(present))

    def put(patient: int, into: int) -> None:
        part[patient] = into
        room[into] -= 1
        lacking[present[patient], into] -= 1

    _one_of_each(present, part, room, order, put)
    while True:
        left = order[part[order] < 0]
        numbers = present[left].sum(axis=0)
        if not numbers.any():
            break
        rarest = np.flatnonzero(numbers == numbers[numbers > 0].min())[0]
        for patient in left[present[left, rarest]]:
            # Of the parts with room, the one that lacks most of the class, then of all classes.
            wants = np.lexsort(
                (rng.random(len(room)), lacking.sum(axis=0), lacking[rarest], room > 0)
            )
            put(patient, int(wants[-1]))
    part[order[part[order] < 0]] = np.repeat(np.arange(len(room)), room)
    return part


def even_out(images: np.ndarray, present: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Exchange patients of parts until each part's share of the images is that of its patients.

    One is exchanged for another, positive for positive, where no class then lacks in a part that
    had it, or is more than two patients off its share. Nothing happens where all parts are
    within 1 % of the images of their share, as those of many patients are.

    Args:
        images: Of each patient, int (patients,).
        present: Whether a patient has a class, bool (patients, classes).
        part: Number of the part of each patient, (patients,).

    Returns:
        `part` after the exchanges.
    """
    part = part.copy()
    shares = np.bincount(part) / len(part)
    while True:
        surplus = np.bincount(part, weights=images) - shares * images.sum()
        if abs(surplus).max() <= _NEAR * images.sum():
            return part
        exchange = _best_exchange(images, present, part, shares, surplus)
        if exchange is None:
            return part
        part[exchange] = part[exchange[::-1]]


def _best_exchange(
    images: np.ndarray,
    present: np.ndarray,
    part: np.ndarray,
    shares: np.ndarray,
    surplus: np.ndarray,
) -> np.ndarray | None:
    """The two patients whose exchange brings the images nearest to the parts' shares of them."""
    kinds = np.column_stack([images, present])
    best, most = None, 0.0
    for giver, taker in permutations(range(len(shares)), 2):
        gap = surplus[giver] - surplus[taker]
        # Of patients that are alike one is enough; they come by their number of images.
        gives, takes = (
            np.flatnonzero(part == side)[
                np.unique(kinds[part == side], axis=0, return_index=True)[1]
            ]
            for side in (giver, taker)
        )
        gives, takes = gives[-_KINDS:], takes[:_KINDS]
        moved = images[gives][:, None] - images[takes]
        gain = moved * (gap - moved)  # half of what the sum of squared surpluses loses
        gain[present[gives].max(axis=1)[:, None] != present[takes].max(axis=1)] = 0
        change = present[gives][:, None].astype(int) - present[takes]
        for side, sign in ((giver, -1), (taker, 1)):
            before = present[part == side].sum(axis=0)
            after = before + sign * change
            off, allowed = (abs(n - shares[side] * present.sum(axis=0)) for n in (after, before))
            fits = (off <= np.maximum(allowed, _OFF)) & ((after > 0) | (before == 0))
            gain *= fits.all(axis=2)
        if gain.size and gain.max() > most:
            most = gain.max()
            row, column = np.unravel_index(gain.argmax(), gain.shape)
            best = np.array([gives[row], takes[column]])
    return best


def _one_of_each(
    present: np.ndarray,
    part: np.ndarray,
    room: np.ndarray,
    order: np.ndarray,
    put: Callable[[int, int], None],
) -> None:
    """Give each part a patient of every class that has enough, the rarest class first."""
    parts = np.flatnonzero(room)
    numbers = present.sum(axis=0)
    enough = numbers >= len(parts)
    for name in np.argsort(numbers, kind="stable"):
        for into in parts[np.argsort(room[parts], kind="stable")] if enough[name] else ():
            there = present[part == into].any(axis=0)
            free = order[(part[order] < 0) & present[order, name]]
            if there[name] or not room[into] or not len(free):
                continue
            # The patient who has most of what the part has none of.
            wanted = present[np.ix_(free, enough & ~there)].sum(axis=1)
            put(int(free[np.argmax(wanted)]), int(into))
