"""The policy of a site or of the server: properties of a scope in FLARE's `local/privacy.json`.

FLARE puts the properties of a job's scope into every context of the job's process there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nvflare.apis.fl_context import FLContext


class PolicyError(ValueError):
    """A policy has an unknown key or an unusable value, or it keeps its site out of the job."""


def scope_properties(fl_ctx: FLContext, known: Collection[str]) -> dict[str, Any] | None:
    """Properties of the running job's scope; None: there is no policy.

    Raises:
        PolicyError: The properties are not a mapping, or a key is not in `known`.
    """
    from nvflare.apis.fl_constant import FLContextKey  # writing policies needs no FLARE

    properties = fl_ctx.get_prop(FLContextKey.SCOPE_PROPERTIES)
    if properties is None:
        return None
    if not isinstance(properties, Mapping) or (strange := sorted(properties.keys() - set(known))):
        got = strange if isinstance(properties, Mapping) else properties
        raise PolicyError(
            f"local/privacy.json: a scope's 'properties' may have the keys {', '.join(known)}; "
            f"got {got!r}. Check the spelling."
        )
    return dict(properties)


def is_class_names(value: object) -> bool:
    """Whether a policy's value is a list of class names."""
    return isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)


def by_study(table: object) -> bool:
    """Whether a policy's value is a table per study."""
    return (
        isinstance(table, Mapping)
        and bool(table)
        and all(isinstance(value, Mapping) for value in table.values())
    )
