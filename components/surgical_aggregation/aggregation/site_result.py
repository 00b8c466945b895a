"""What a site sent, as a value that checks, aggregator, selection and records share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surgical_aggregation.aggregation.averaging import Array, Variables


@dataclass(frozen=True)
class SiteResult:
    """A site's result of a task, read once when it comes; see `wire.results`.

    Attributes:
        body: Body variables by path.
        columns: Class -> (kernel of shape (features,), bias of shape (1,)).
        samples: Images trained on in this round; None when not reported.
        positives: Class -> positive labels of it at the site; None when not reported.
        lacking: Class -> what the site has no training image of, see `one_sided.lacking`.
        metrics: Of the model that the site received, by name, see `metrics.named`.
        features: Statistics of its test images, see `feature_statistics`; None when not reported.
        filters: Names that FLARE's filters left in the result.
        differences: Whether body and columns are differences from the received ones.
    """

    body: Variables
    columns: Mapping[str, tuple[Array, Array]]
    samples: float | None = None
    positives: Mapping[str, float] | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    features: Mapping[str, Any] | None = None
    filters: tuple[str, ...] = ()
    differences: bool = False
