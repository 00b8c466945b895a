"""Which variables of a body are batch normalisation's, and which never change in a run.

A site asks its network's layers (`architecture.variable_kinds`). The server has no network: the
manifest of the initial body says it, and every model of a run hands it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Variables

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
