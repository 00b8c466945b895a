"""How much one site's result may ask of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from surgical_aggregation.aggregation.class_names import LONGEST

LARGEST_STEP = 65504.0
"""Farthest that a round may move a number of the model, and the largest number that a feature has.

It is the largest of half precision, in which a site may compute (mixed precision). In single
precision, too, the numbers beyond it are so coarse (0.008) that training never moves them back.
"""


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

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    f"limit {field.name!r} must be a whole number above 0; got {value!r}."
                )


def limits(given: Mapping[str, int] | None) -> Limits:
    """Limits by name; the others have their defaults. Raises `ValueError`."""
    given = given or {}
    known = [field.name for field in fields(Limits)]
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"limits are {', '.join(known)}; got {unknown}. Check the spelling.")
    return Limits(**given)
