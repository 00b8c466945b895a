"""How much one site's result may ask of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from surgical_aggregation.aggregation.class_names import LONGEST


class LimitError(ValueError):
    """A limit is unknown, or no whole number above 0."""


@dataclass(frozen=True)
class Limits:
    """What a result may not exceed; one that does is refused whole.

    FLARE has received and decoded a message when it is looked at, so nothing here protects the
    server from the message itself. What is protected is all that comes after: the checks, the
    memory in which a round's results wait for its end, the global model, and its file.

    Attributes:
        class_name_bytes: Bytes of a class name in UTF-8. Default 200.
        site_classes: Classes of one site. Default 1,000: radiology's largest label sets have some
            200.
        model_classes: Classes of the global model with what is new in the round's accepted
            results; else sites whose classes have other names in every round would make it grow
            without end. A site that brings no new class is never refused for it. Default 5,000.
        result_bytes: Bytes of a result's variables, names included. A lawful one cannot have more
            than its body and columns have, for shapes and dtypes are checked; but a model or a
            ciphertext may be more than the server's memory holds times the sites. Default 2 GiB:
            DenseNet121 has 28 MB, and less than 1 GB when encrypted.

    Raises:
        LimitError: One is no whole number above 0.
    """

    class_name_bytes: int = LONGEST
    site_classes: int = 1_000
    model_classes: int = 5_000
    result_bytes: int = 2 * 1024**3

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise LimitError(
                    f"limit {field.name!r} must be a whole number above 0; got {value!r}."
                )


def limits(given: Mapping[str, int] | None) -> Limits:
    """Limits by name; those that are not given have their defaults.

    Raises:
        LimitError: There is no such limit, or its value is none.
    """
    given = given or {}
    known = [field.name for field in fields(Limits)]
    if unknown := sorted(set(given) - set(known)):
        raise LimitError(f"limits are {', '.join(known)}; got {unknown}. Check the spelling.")
    return Limits(**given)
