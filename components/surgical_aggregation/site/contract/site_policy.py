"""What a site decides for itself, whatever a job asks for.

A site writes it into FLARE's `local/privacy.json`, as the properties of a scope:

    {"scopes": [{"name": "cxr", "properties": {"share": ["Edema"], "min_positives": 20}}],
     "default_scope": "cxr"}

FLARE puts the properties of a job's scope into every context of the job's process at that place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nvflare.apis.fl_context import FLContext


class PolicyError(ValueError):
    """A place's policy does not say what it may say."""


@dataclass(frozen=True)
class SitePolicy:
    """A site's policy. Each attribute is a key of the scope's properties.

    Attributes:
        share: Classes that the site is willing to share; None: all that it labels.
        min_images: Training images with which the site takes part; with fewer it does not.
        min_positives: Positive training labels with which a class takes part.
        report_counts: Whether numbers of images per class may leave the site, where a job asks for
            them.
        site_files: Folder of the study's site files; None: as the job says.
    """

    share: tuple[str, ...] | None = None
    min_images: int = 0
    min_positives: int = 0
    report_counts: bool = False
    site_files: str | None = None


NO_POLICY = SitePolicy(report_counts=True)
"""What holds where a place has no policy: everything is as the job asks."""


def site_policy(fl_ctx: FLContext) -> SitePolicy:
    """The policy of the site for the running job.

    Args:
        fl_ctx: Any context of the job, at the site.

    Raises:
        PolicyError: A key is unknown, or its value of another kind.
    """
    given = scope_properties(fl_ctx, [field.name for field in fields(SitePolicy)])
    if given is None:
        return NO_POLICY
    for key, value in given.items():
        needed, holds = _KINDS[key]
        if not holds(value):
            raise PolicyError(f"local/privacy.json: {key!r} needs {needed}; got {value!r}.")
    if "share" in given:
        given["share"] = tuple(given["share"])
    return SitePolicy(**given)


def scope_properties(fl_ctx: FLContext, known: Collection[str]) -> dict[str, Any] | None:
    """Properties of the scope of the running job; None where the place has no policy.

    Args:
        fl_ctx: Any context of the job.
        known: Keys that there may be.

    Raises:
        PolicyError: There is another key.
    """
    from nvflare.apis.fl_constant import FLContextKey  # those who write a policy need no FLARE

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
    """Whether a value of a policy is a list of class names."""
    return isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "share": ("a list of class names", is_class_names),
    "min_images": ("a whole number, 0 or more", _is_count),
    "min_positives": ("a whole number, 0 or more", _is_count),
    "report_counts": ("true or false", lambda value: isinstance(value, bool)),
    "site_files": ("the path of a folder", lambda value: isinstance(value, str) and bool(value)),
}
