"""Iterative stratification: patients into parts that have equally much of every class.

Sechidis, Tsoumakas and Vlahavas, ECML PKDD 2011: the rarest class is dealt out first, each patient
to the part that lacks most of it. Two things are added: parts have exact sizes, and before anything
else each part gets a patient of every class that has enough of them, so that rounding leaves none
without.
"""

from collections.abc import Callable, Sequence

import numpy as np


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
