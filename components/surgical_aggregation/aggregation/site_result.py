"""What a site sent, and how much it may ask of the server.

Checks, aggregator, selection and records share the value that a result is read into.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from surgical_aggregation.aggregation.averaging import Array, Variables
from surgical_aggregation.aggregation.class_names import LONGEST

LARGEST_STEP = 65504.0
"""Farthest that a round may move a number of the model, and the largest number that a feature has.

It is the largest of half precision, in which a site may compute (mixed precision). In single
precision, too, the numbers beyond it are so coarse (0.008) that training never moves them back.
"""

LARGEST_COUNT = 10**12
"""More images or positives than any site has; sums of such weights are exact enough, and finite."""


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


@dataclass(frozen=True)
class Limits:
    """What a result may not exceed; one that does is refused whole.

    FLARE has received and decoded the message by then. The limits protect what comes after: the
    checks, the memory until the round's end, the global model and its file.

    Attributes:
        class_name_bytes: Bytes of a class name in UTF-8. Default 200.
        site_classes: Classes of one site. Default 1,000.
        model_classes: Classes of the global model with the new ones of the round. Default 5,000. A
            site without a new class is never refused for it.
        result_bytes: Bytes of a result's variables, names included. Default 2 GiB: DenseNet121 has
            28 MB, and less than 1 GB when encrypted.
    """

    class_name_bytes: int = LONGEST
    site_classes: int = 1_000
    model_classes: int = 5_000
    result_bytes: int = 2 * 1024**3


def limits(given: Mapping[str, int] | None) -> Limits:
    """Limits by name; the others have their defaults. Raises `ValueError`."""
    known = [field.name for field in fields(Limits)]
    for name, value in (given or {}).items():
        if name not in known:
            raise ValueError(f"limits are {', '.join(known)}; got {name!r}. Check the spelling.")
        if type(value) is not int or value < 1:
            raise ValueError(f"limit {name!r} must be a whole number above 0; got {value!r}.")
    return Limits(**(given or {}))
