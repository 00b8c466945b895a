"""Kinds of a body's variables, and strategy f: which of them a site sends.

A site asks its network's layers for the kinds (`architecture.variable_kinds`). The server has no
network: the manifest of the initial body says them, and every model of a run hands them on.

| strategy | at the site | on the wire | global model |
|---|---|---|---|
| fedavg | trained | averaged with everything else | yes |
| fedbn | trained, stays at the site | never sent | one model per site |
| fedbn+ | frozen at the initial body's values | never sent by a site | yes |
| fixbn | scale and shift trained, statistics as in fedbn+ | as fedavg, as fedbn+ | yes |

Constant variables (see `VariableKinds`) are never sent. Layer normalisation and the like are
trained and averaged with everything else. Further strategies come from installed packages, as entry
points of the group `GROUP`, or by their class path; see `extras.part`.

Source: FedBN, Li et al., ICLR 2021; FedBN+ (FedFBN), Kulkarni et al., arXiv:2303.06180; FixBN,
Zhong et al., arXiv:2303.06530, from the first round on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgical_aggregation.extras import PartError, part

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Variables

GROUP = "surgical_aggregation.strategies"

HEAD_LAYER = "head"
"""Name of the head's layer in a site's model."""


KINDS = "variable_kinds"
"""In a manifest: {"batch_norm": [paths], "constant": [paths]}."""

MOVING_MEAN = "/moving_mean"
MOVING_VARIANCE = "/moving_variance"
"""Ends of the paths of a batch-norm layer's running mean and variance in Keras."""

_OF_A_LAYER = (MOVING_MEAN, MOVING_VARIANCE, "/gamma", "/beta")


@dataclass(frozen=True)
class VariableKinds:
    """Paths of the body variables that are not trained and averaged like all others.

    Attributes:
        batch_norm: Scale, shift, running mean and variance of batch normalisation.
        constant: Neither trained nor batch normalisation's, or no floating numbers, e.g. frozen
            layers and what `keras.layers.Normalization` has adapted to. No site sends them.
    """

    batch_norm: frozenset[str] = frozenset()
    constant: frozenset[str] = frozenset()

    @property
    def statistics(self) -> frozenset[str]:
        """Running means and variances of batch normalisation."""
        return frozenset(p for p in self.batch_norm if p.endswith((MOVING_MEAN, MOVING_VARIANCE)))

    @property
    def variances(self) -> frozenset[str]:
        """Running variances of batch normalisation."""
        return frozenset(path for path in self.batch_norm if path.endswith(MOVING_VARIANCE))

    def facts(self) -> dict[str, Any]:
        """For the manifest of a model."""
        return {KINDS: {"batch_norm": sorted(self.batch_norm), "constant": sorted(self.constant)}}


def kinds_of(manifest: Mapping[str, Any], body: Variables) -> VariableKinds:
    """Kinds of a model's body variables, as its manifest says.

    Where it says nothing, a layer with both a moving_mean and a moving_variance is batch
    normalisation, with the gamma and beta beside them, and integers are constant.
    """
    if facts := manifest.get(KINDS):
        return VariableKinds(frozenset(facts["batch_norm"]), frozenset(facts["constant"]))
    means, variances = (
        {path.removesuffix(end) for path in body if path.endswith(end)}
        for end in (MOVING_MEAN, MOVING_VARIANCE)
    )
    of_layers = {f"{layer}{end}" for layer in means & variances for end in _OF_A_LAYER}
    constant = {path for path, value in body.items() if value.dtype.kind in "iub"}
    return VariableKinds(frozenset(of_layers & body.keys()), frozenset(constant))


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
    name = "fedbn+"

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
                f"strategy {self.name!r} freezes batch normalisation as the initial body has it, "
                "which must have been trained; got running means of 0 and variances of 1 in all "
                f"{len(statistics)} variables, as random weights have them. Take 'fedavg' or "
                "'fedbn', or an initial body with trained weights."
            )


class _FixBN(_FedBNPlus):
    name = "fixbn"

    def frozen(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        return kinds.statistics


_OWN: dict[str, Strategy] = {
    "fedavg": Strategy(), "fedbn": _FedBN(), "fedbn+": _FedBNPlus(), "fixbn": _FixBN(),
}  # fmt: skip

STRATEGIES = tuple(_OWN)


def find(strategy: str | Strategy) -> Strategy:
    """The strategy that a setting names; raises `PartError`."""
    return part("strategy", strategy, GROUP, _OWN)


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
