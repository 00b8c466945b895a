"""Strategy f: what becomes of batch normalisation, and so what a site sends of its body.

| strategy | at the site | on the wire | global model |
|---|---|---|---|
| fedavg | trained | averaged with everything else | yes |
| fedbn | trained, stays at the site | never sent | one model per site |
| fedbn+ | frozen at the initial body's values | never sent by a site | yes |

Constant variables (see `variable_kinds`) are never sent. Layer normalisation and the like are
trained and averaged with everything else. Further strategies come from installed packages, as entry
points of the group `GROUP`, or by their class path; see `parts`.

Source: FedBN, Li et al., ICLR 2021; FedBN+ (FedFBN), Kulkarni et al., arXiv:2303.06180.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from surgical_aggregation.aggregation.parts import PartError, part
from surgical_aggregation.aggregation.variable_kinds import MOVING_MEAN, VariableKinds

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Variables

GROUP = "surgical_aggregation.strategies"

HEAD_LAYER = "head"
"""Name of the head's layer in a site's model."""


class StrategyError(ValueError):
    """The initial body is not fit for the strategy."""


class Strategy:
    """What a site keeps of its body, and what it freezes; all else is trained and averaged.

    This one is fedavg: nothing. Both methods get the paths of all body variables, and their kinds.
    """

    def personal(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        """Paths of the variables of which every site trains its own, and sends none."""
        return frozenset()

    def frozen(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        """Paths of the variables that stay as the initial body has them, and are not sent."""
        return frozenset()

    def check_start(self, body: Variables, kinds: VariableKinds) -> None:
        """Refuse an initial body that is not fit for the strategy; raises `StrategyError`."""


class _FedBN(Strategy):
    def personal(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        return kinds.batch_norm


class _FedBNPlus(Strategy):
    def frozen(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        return kinds.batch_norm

    def check_start(self, body: Variables, kinds: VariableKinds) -> None:
        """Refuse to freeze batch normalisation that was never trained.

        Running means of 0 and variances of 1 in every layer normalise nothing.
        """
        statistics = kinds.statistics
        untouched = [(body[p] == (0 if p.endswith(MOVING_MEAN) else 1)).all() for p in statistics]
        if untouched and all(untouched):
            raise StrategyError(
                "strategy 'fedbn+' freezes batch normalisation as the initial body has it, which "
                "must have been trained; got running means of 0 and variances of 1 in all "
                f"{len(statistics)} variables, as random weights have them. Take 'fedavg' or "
                "'fedbn', or an initial body with trained weights."
            )


_OWN = {"fedavg": Strategy(), "fedbn": _FedBN(), "fedbn+": _FedBNPlus()}

STRATEGIES = tuple(_OWN)


def find(strategy: str | Strategy) -> Strategy:
    """The strategy that a setting names; raises `PartError`."""
    found: Strategy = part("strategy", strategy, GROUP, _OWN)
    return found


def check_start(strategy: str | Strategy, kinds: VariableKinds, body: Variables) -> None:
    """Refuse an initial body that is not fit for a strategy; raises `StrategyError`."""
    find(strategy).check_start(body, kinds)


def kept_at_site(
    strategy: str | Strategy, body: Collection[str], kinds: VariableKinds
) -> frozenset[str]:
    """Paths of the body variables that a site does not send.

    Example:
        >>> kept_at_site("fedbn+", ["a", "bn/gamma"], VariableKinds(frozenset({"bn/gamma"})))
        frozenset({'bn/gamma'})
    """
    found = find(strategy)
    return kinds.constant | found.personal(body, kinds) | found.frozen(body, kinds)


def has_personal(strategy: str | Strategy, *, personal_head: bool = False) -> bool:
    """Whether every site ends with a model of its own; of a strategy unknown here, it is not."""
    try:
        found = find(strategy)
    except PartError:
        return personal_head
    return personal_head or type(found).personal is not Strategy.personal
