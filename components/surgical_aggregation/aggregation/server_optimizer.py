"""The server's optimizer: a step from the last model towards the round's aggregate.

With x the last global model, a the round's aggregate, d = a - x the round's step, learning rate h
and momentum b, per variable

    none      x' = a
    fedavgm   m' = b m + d                             x' = x + h m'
    fedadam   m' = b m + (1 - b) d
              v' = c v + (1 - c) d^2                   x' = x + h m' / (sqrt(v') + t)

A variable that no site sends in a round keeps its value and its moments. Averages of late models,
see `average_of_rounds`, are kept with the moments.

Source:
    FedAvgM: Hsu, Qi and Brown, arXiv:1909.06335. FedAdam: Reddi et al., "Adaptive Federated
    Optimization", ICLR 2021, Algorithm 2, without bias correction and with v starting at t^2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Array, Variables

    Moments = Mapping[str, Array]
    Step = tuple[Array, dict[str, Array]]

SQUARE_DECAY = 0.99
"""c, the decay of FedAdam's second moment (Reddi et al.)."""

ADAPTIVITY = 1e-3
"""t, FedAdam's adaptivity, Reddi et al.'s tau."""


def _fedavgm(d: Array, moments: Moments, momentum: float) -> Step:
    velocity = momentum * moments.get("velocity", 0.0) + d
    return velocity, {"velocity": velocity}


def _fedadam(d: Array, moments: Moments, momentum: float) -> Step:
    import numpy as np

    mean = momentum * moments.get("mean", 0.0) + (1 - momentum) * d
    square = SQUARE_DECAY * moments.get("square", ADAPTIVITY**2) + (1 - SQUARE_DECAY) * d**2
    return mean / (np.sqrt(square) + ADAPTIVITY), {"mean": mean, "square": square}


_RULES: dict[str, tuple[tuple[str, ...], Callable[[Array, Moments, float], Step]]] = {
    "fedavgm": (("velocity",), _fedavgm),
    "fedadam": (("mean", "square"), _fedadam),
}

OPTIMIZERS = ("none", *_RULES)

OWN_RATES = {"none": 1.0, "fedavgm": 1.0, "fedadam": 0.003}
"""h by default. FedAdam moves each value by about h per round, whatever d is."""


def check(optimizer: str, learning_rate: float, momentum: float) -> None:
    """Raise `ValueError` for an unknown optimizer or settings out of range."""
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer must be one of {OPTIMIZERS}; got {optimizer!r}.")
    if not learning_rate >= 0:
        raise ValueError(f"learning_rate must be 0 or more; got {learning_rate!r}.")
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must be at least 0 and below 1; got {momentum!r}.")


def step(
    optimizer: str,
    last: Variables,
    aggregate: Variables,
    moments: Variables,
    *,
    statistics: Collection[str] = (),
    learning_rate: float,
    momentum: float,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Apply the optimizer to a round's aggregate, computed in float64.

    New variables and running statistics of batch normalisation are set to the average: a step
    could make a variance negative. Moments have the variable's dtype, but at least float32, so that
    a resumed run takes the same steps.

    Args:
        optimizer: One of `OPTIMIZERS`.
        last: The global model's variables by name.
        aggregate: The round's averages, for the variables that were sent.
        moments: The moments that the last step returned, `<moment>/<name>`; those of another
            optimizer are dropped.
        statistics: Names of batch normalisation's running means and variances. Default: none.
        learning_rate: h above; 0: that of `OWN_RATES`.
        momentum: b above.

    Returns:
        The aggregate's variables after the step, in their own dtypes, and the moments. A value that
        overflows its dtype is infinite.
    """
    if optimizer == "none":
        return dict(aggregate), {}
    import numpy as np  # a process that only calls `check` does not import it

    rate = learning_rate or OWN_RATES[optimizer]
    kinds, rule = _RULES[optimizer]
    after = {k: moments[k] for k in moments if k.partition("/")[0] in kinds}
    stepped = {}
    for name, value in aggregate.items():
        if name not in last or name in statistics:
            stepped[name] = value
            continue
        start = last[name].astype(np.float64)
        before = {
            kind: after[f"{kind}/{name}"].astype(np.float64)
            for kind in kinds
            if f"{kind}/{name}" in after
        }
        kept = np.promote_types(value.dtype, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks for overflow
            direction, new = rule(value - start, before, momentum)
            stepped[name] = np.asarray(start + rate * direction, value.dtype)
            after |= {f"{kind}/{name}": np.asarray(moment, kept) for kind, moment in new.items()}
    return stepped, after


def without(moments: Variables, names: set[str]) -> dict[str, Array]:
    """Moments without those of the variables `names`."""
    return {k: value for k, value in moments.items() if k.partition("/")[2] not in names}
