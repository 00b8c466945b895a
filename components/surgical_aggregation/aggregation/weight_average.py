"""A running mean of the global models of the late rounds, variable by variable.

With x the model after a round and b the decay,

    a' = b a + (1 - b) x        for every variable that a site sent in the round,

and a' = x the first time. The rounds of the last 1 / (1 - b) or so count most. A column whose sites
are away keeps its mean, as a class's column keeps its value.

Source:
    Averages of the models late in training: Izmailov et al., UAI 2018 (SWA), and in a federation
    FedSWA, arXiv:2507.20016. There all late models weigh the same; with a decay nobody needs to
    know beforehand which rounds will be the late ones.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Array, Variables

_PREFIX = "average/"


def check(decay: float) -> None:
    """Raise `ValueError` for a decay that is not at least 0 (no average) and below 1."""
    if not 0 <= decay < 1:
        raise ValueError(f"average_decay must be at least 0 and below 1; got {decay!r}.")


def updated(
    moments: Variables, model: Variables, sent: Collection[str], decay: float
) -> dict[str, Array]:
    """The averages after a round, computed in float64; see the module.

    Args:
        moments: What the last round returned, among other moments of the server.
        model: The model after the round, by name.
        sent: Names of the variables that a site sent.
        decay: b above; 0: there is no average.

    Returns:
        `average/<name>` -> average, in the variable's dtype, but at least float32.

    Example:
        >>> import numpy as np
        >>> after = updated({"average/w": np.float32([1])}, {"w": np.float32([5])}, ["w"], 0.75)
        >>> after["average/w"].tolist()
        [2.0]
    """
    if not decay:
        return {}
    import numpy as np  # those who only `check` need none

    averages = {name: value for name, value in moments.items() if name.startswith(_PREFIX)}
    for name in sent:
        value = model[name].astype(np.float64)
        before = averages.get(f"{_PREFIX}{name}")
        mean = value
        if before is not None:
            mean = decay * before.astype(np.float64) + (1 - decay) * value
        averages[f"{_PREFIX}{name}"] = np.asarray(
            mean, np.promote_types(model[name].dtype, np.float32)
        )
    return averages


def averaged(model: Variables, moments: Variables) -> dict[str, Array] | None:
    """The model with its averages in place of the variables that have one; None without any."""
    averages = {
        name.removeprefix(_PREFIX): value
        for name, value in moments.items()
        if name.startswith(_PREFIX)
    }
    if not averages:
        return None
    return {
        name: averages[name].astype(value.dtype) if name in averages else value
        for name, value in model.items()
    }
