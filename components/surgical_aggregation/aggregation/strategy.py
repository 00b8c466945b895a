"""Strategy f: what becomes of batch normalisation, and so what a site sends of its body.

| strategy | at the site | on the wire | global model |
|---|---|---|---|
| fedavg | trained | averaged with everything else | yes |
| fedbn | trained, stays at the site | never sent | one model per site |
| fedbn+ | frozen at the initial body's values | never sent by a site | yes |

Constant variables (see `variable_kinds`) are never sent. Layer normalisation and the like are
trained and averaged with everything else.

Source: FedBN, Li et al., ICLR 2021; FedBN+ (FedFBN), Kulkarni et al., arXiv:2303.06180.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgical_aggregation.aggregation.variable_kinds import MOVING_MEAN, VariableKinds

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Variables

STRATEGIES = ("fedavg", "fedbn", "fedbn+")

HEAD_LAYER = "head"
"""Name of the head's layer in a site's model."""


class StrategyError(ValueError):
    """A strategy is unknown, or the initial body is not fit for it."""


def check(strategy: str) -> None:
    """Raise `StrategyError` for an unknown strategy."""
    if strategy not in STRATEGIES:
        raise StrategyError(f"strategy must be one of {STRATEGIES}; got {strategy!r}.")


def check_start(strategy: str, kinds: VariableKinds, body: Variables) -> None:
    """Refuse to freeze batch normalisation that was never trained.

    Running means of 0 and variances of 1 in every layer of `body` normalise nothing; frozen by
    fedbn+, they never will.

    Raises:
        StrategyError: They are, and the strategy is fedbn+.
    """
    statistics = kinds.statistics
    untouched = [(body[p] == (0 if p.endswith(MOVING_MEAN) else 1)).all() for p in statistics]
    if strategy == "fedbn+" and untouched and all(untouched):
        raise StrategyError(
            "strategy 'fedbn+' freezes batch normalisation as the initial body has it, which must "
            f"have been trained; got running means of 0 and variances of 1 in all "
            f"{len(statistics)} variables, as random weights have them. Take 'fedavg' or 'fedbn', "
            "or an initial body with trained weights (`surgagg model init --weights`)."
        )


def kept_at_site(strategy: str, kinds: VariableKinds) -> frozenset[str]:
    """Paths of the body variables that a site does not send.

    Example:
        >>> kept_at_site("fedbn+", VariableKinds(frozenset({"bn/gamma"})))
        frozenset({'bn/gamma'})
    """
    return kinds.constant if strategy == "fedavg" else kinds.constant | kinds.batch_norm


def personal(strategy: str, kinds: VariableKinds) -> frozenset[str]:
    """Paths of the body variables of which every site trains its own."""
    return kinds.batch_norm if strategy == "fedbn" else frozenset()


def has_personal(strategy: str, *, personal_head: bool = False) -> bool:
    """Whether every site ends with a model of its own."""
    return personal_head or strategy == "fedbn"
