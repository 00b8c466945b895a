"""Strategy f: what becomes of batch normalisation, and so what a site sends of its body.

| strategy | at the site | on the wire | global model |
|---|---|---|---|
| fedavg | trained | averaged with everything else | yes |
| fedbn | trained, stays at the site | never sent | one model per site |
| fedbn+ | frozen at the initial body's values | never sent by a site | yes |

Source: FedBN, Li et al., ICLR 2021; FedBN+ (FedFBN), Kulkarni et al., arXiv:2303.06180.
"""

from __future__ import annotations

STRATEGIES = ("fedavg", "fedbn", "fedbn+")

BATCH_NORM = r"/(gamma|beta|moving_mean|moving_variance)$"
"""Regular expression of the paths of batch-norm variables, as Keras calls them."""

HEAD_LAYER = "head"
"""Name of the head's layer in a site's model."""


class StrategyError(ValueError):
    """A strategy is unknown."""


def check(strategy: str) -> None:
    """Refuse an unknown strategy.

    Raises:
        StrategyError: It is none of `STRATEGIES`.
    """
    if strategy not in STRATEGIES:
        raise StrategyError(f"strategy must be one of {STRATEGIES}; got {strategy!r}.")


def kept_at_site(strategy: str, *, personal_head: bool = False) -> str | None:
    """Regular expression of the model variables that a site does not send.

    Args:
        strategy: One of `STRATEGIES`.
        personal_head: Whether the head never leaves the site either.

    Returns:
        To be searched for in a path; None when everything is sent.

    Example:
        >>> kept_at_site("fedavg", personal_head=True)
        '^head/'
    """
    check(strategy)
    parts = [f"^{HEAD_LAYER}/"] if personal_head else []
    if strategy != "fedavg":
        parts.append(BATCH_NORM)
    return "|".join(parts) or None


def personal(strategy: str, *, personal_head: bool = False) -> str | None:
    """Regular expression of the variables of which every site trains its own; None: none."""
    check(strategy)
    return kept_at_site("fedavg" if strategy == "fedbn+" else strategy, personal_head=personal_head)
