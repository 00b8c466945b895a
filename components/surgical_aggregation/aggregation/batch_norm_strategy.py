"""The strategy: what happens to batch norm, whether a site trains, freezes, keeps or sends it.

A strategy decides by the kinds of body variables. A site derives the kinds from its network's
layers (`architecture.variable_kinds`). The server has no network: it reads them from the manifest
of the initial body, and every later model keeps them.

| strategy | at the site | on the wire | global model |
|---|---|---|---|
| fedavg | trained | averaged with everything else | yes |
| fedbn | trained, stays at the site | never sent | one model per site |
| fedbn+ | frozen at the initial body's values | never sent by a site | yes |
| fixbn | scale and shift trained, statistics as in fedbn+ | as fedavg, as fedbn+ | yes |

Constant variables (see `VariableKinds`) are never sent. Other normalisations, such as layer
normalisation, are trained and averaged with everything else. Installed packages can offer further
strategies as entry points of the group `GROUP`; a job can also name one by class path. See
`extras.find_part`.

Source: FedBN, Li et al., ICLR 2021; FedBN+ (FedFBN), Kulkarni et al., arXiv:2303.06180; FixBN,
Zhong et al., arXiv:2303.06530, from the first round on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surgical_aggregation.extras import PartError, find_part

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Variables

__all__ = ["STRATEGIES", "Strategy", "VariableKinds"]

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
    """Paths of the body variables that strategies treat specially.

    Attributes:
        batch_norm: Scale, shift, running mean and variance of batch normalisation.
        constant: Variables that are neither trained nor batch normalisation's, or not of a floating
            dtype, e.g. those of frozen layers and of `keras.layers.Normalization`. Never sent.
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
        """The kinds as facts of a model's manifest."""
        return {KINDS: {"batch_norm": sorted(self.batch_norm), "constant": sorted(self.constant)}}


def kinds_of(manifest: Mapping[str, Any], body: Variables) -> VariableKinds:
    """Kinds of a model's body variables, from its manifest.

    If the manifest lacks them, a layer with both a moving_mean and a moving_variance (and its gamma
    and beta) counts as batch normalisation, and integer variables as constant.
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
    """The initial body is not suitable for the strategy."""


class Strategy:
    """Which body variables a site keeps or freezes; all others are trained and averaged.

    This base class is fedavg: none. Methods receive all body variables and their kinds.
    """

    def personal(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        """Paths of the variables that every site trains for itself and does not send."""
        return frozenset()

    def frozen(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        """Paths of the variables that keep the initial body's values and are not sent."""
        return frozenset()

    def check_start(self, body: Variables, kinds: VariableKinds) -> None:
        """Refuse an initial body that is unsuitable for the strategy; raises `StrategyError`."""


class _FedBN(Strategy):
    def personal(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        return kinds.batch_norm


class _FedBNPlus(Strategy):
    name = "fedbn+"

    def frozen(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        return kinds.batch_norm

    def check_start(self, body: Variables, kinds: VariableKinds) -> None:
        """Refuse to freeze untrained batch normalisation: means of 0, variances of 1."""
        statistics = kinds.statistics
        untouched = [(body[p] == (0 if p.endswith(MOVING_MEAN) else 1)).all() for p in statistics]
        if untouched and all(untouched):
            raise StrategyError(
                f"strategy {self.name!r} freezes the initial body's batch normalisation, which "
                "must have been trained; got running means of 0 and variances of 1 in all "
                f"{len(statistics)} variables, as in an untrained body. Use strategy 'fedavg' "
                "or 'fedbn', or an initial body with trained weights."
            )


class _FixBN(_FedBNPlus):
    name = "fixbn"

    def frozen(self, body: Collection[str], kinds: VariableKinds) -> frozenset[str]:
        return kinds.statistics


_OWN: dict[str, Strategy] = {
    "fedavg": Strategy(), "fedbn": _FedBN(), "fedbn+": _FedBNPlus(), "fixbn": _FixBN(),
}  # fmt: skip

STRATEGIES = tuple(_OWN)
"""Names of the strategies that come with the package."""


def find(strategy: str | Strategy) -> Strategy:
    """The strategy that a setting names; raises `PartError`."""
    return find_part("strategy", strategy, GROUP, _OWN, Strategy)


def check_body(strategy: str | Strategy, body: Variables, kinds: VariableKinds) -> None:
    """Refuse an initial body that is unsuitable for a strategy.

    Raises:
        StrategyError: `check_start` refuses it, or the strategy keeps variables at each site and
            names none of this body, or one that it lacks.
    """
    found = find(strategy)
    found.check_start(body, kinds)
    if type(found).personal is Strategy.personal:
        return
    personal = found.personal(body, kinds)
    if not personal or personal - body.keys():
        name = strategy if isinstance(strategy, str) else type(found).__name__
        got = ", ".join(sorted(personal - body.keys())[:3]) or "none"
        some = ", ".join(sorted(body)[:: max(1, len(body) // 5)])
        raise StrategyError(
            f"strategy {name!r} keeps variables at each site, and must name variables of the "
            f"initial body; it names {got}. The body has {len(body)}, such as {some}."
        )


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
    """Whether every site ends with a personal model; false for a strategy unknown here."""
    try:
        found = find(strategy)
    except PartError:
        return personal_head
    return personal_head or type(found).personal is not Strategy.personal
