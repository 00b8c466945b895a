"""An average of the models of late rounds, kept with the moments of the server's optimizer.

With x' the model after the round and g the decay, the average is

    a' = g a + (1 - g) x'       for every variable that a site sent in the round,

and a' = x' the first time. About the last 1 / (1 - g) rounds dominate. A column whose sites are
absent keeps its average.

Source:
    Averages of the models late in training: Izmailov et al., UAI 2018 (SWA), and in a federation
    FedSWA, arXiv:2507.20016. These weight all late models equally; with a decay, the first late
    round need not be known in advance.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Array, Variables

_AVERAGE = "average/"


def check(decay: float) -> None:
    """Raise `ValueError` for a decay out of range."""
    if not 0 <= decay < 1:
        raise ValueError(f"average_decay must be at least 0 and below 1; got {decay!r}.")


def average(
    moments: Variables, model: Variables, sent: Collection[str], decay: float
) -> dict[str, Array]:
    """Update the average of the late models after a round, computed in float64; see the module.

    Args:
        moments: Moments after the last round, with its averages.
        model: Variables of the model after the round, by name.
        sent: Names of the variables that a site sent.
        decay: g above; 0: no average.

    Returns:
        `average/<name>` -> average, in the variable's dtype, but at least float32.

    Example:
        >>> import numpy as np
        >>> after = average({"average/w": np.float32([1])}, {"w": np.float32([5])}, ["w"], 0.75)
        >>> after["average/w"].tolist()
        [2.0]
    """
    if not decay:
        return {}
    import numpy as np

    averages = {name: value for name, value in moments.items() if name.startswith(_AVERAGE)}
    for name in sent:
        mean = model[name].astype(np.float64)
        if (before := averages.get(f"{_AVERAGE}{name}")) is not None:
            mean = decay * before.astype(np.float64) + (1 - decay) * mean
        kept = np.promote_types(model[name].dtype, np.float32)
        averages[f"{_AVERAGE}{name}"] = np.asarray(mean, kept)
    return averages


def averaged(model: Variables, moments: Variables) -> dict[str, Array] | None:
    """The model with averages in place of the variables that have one; None: there are none."""
    if not any(name.startswith(_AVERAGE) for name in moments):
        return None
    return {
        name: moments.get(f"{_AVERAGE}{name}", value).astype(value.dtype)
        for name, value in model.items()
    }
