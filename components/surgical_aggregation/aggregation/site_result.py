"""A site's result as a value, and limits on its size.

Checks, aggregator, selection and records share this value.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from surgical_aggregation.aggregation.averaging import Array, Variables
from surgical_aggregation.aggregation.class_names import LONGEST

LARGEST_STEP = 65504.0
"""Largest change of a model's value in a round, and largest mean of a feature.

It is the largest number of half precision, which a site may use (mixed precision). Larger numbers
in single precision are spaced 0.008 apart, too coarse for training to correct them.
"""

LARGEST_COUNT = 10**12
"""Largest accepted number of images or positives; sums of such weights stay exact and finite."""


@dataclass(frozen=True)
class SiteResult:
    """A site's result of a task, read once when it comes; see `wire.results`.

    Attributes:
        body: Body variables by path.
        columns: Class -> (kernel of shape (features,), bias of shape (1,)).
        samples: Number of images trained on in this round; None: not reported.
        positives: Class -> number of positive labels at the site; None: not reported.
        lacking: Class -> kind of label that the site lacks, see `one_sided.lacking`.
        metrics: Metrics by name of the model that the site received, see `metrics.named`.
        features: Statistics of its test images, see `feature_statistics`; None: not reported.
        filters: Names of filters that FLARE lists in the result.
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
    """Limits on a result; one that exceeds a limit is refused as a whole.

    `result_bytes` is checked while arrays arrive, too; the others after FLARE has received and
    decoded the message. They protect the later steps: the checks, memory and disk during the round,
    the global model and its file.

    Attributes:
        class_name_bytes: Bytes of a class name in UTF-8. Default 200.
        site_classes: Number of classes of one site. Default 1,000.
        model_classes: Number of classes of the global model, including new ones of the round.
            Default 5,000. Not applied to a site without a new class.
        result_bytes: Bytes of a result's variables and their names. Default 2 GiB; DenseNet121 has
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


class _Received(reprlib.Repr):
    """Shortens a received value for a message, without ever raising."""

    def repr_int(self, x: int, level: int) -> str:
        """An integer; Python raises for very large ones."""
        return str(x) if x.bit_length() <= 64 else f"a whole number of {x.bit_length()} bits"


received = _Received().repr
"""A received value, for a message."""
