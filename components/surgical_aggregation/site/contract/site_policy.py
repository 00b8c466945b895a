"""A site's policy, which no job can relax, and the classes that it withholds.

A site sets it in FLARE's `local/privacy.json`, as properties of a scope:

    {"scopes": [{"name": "cxr", "properties": {"share": ["Edema"], "min_positives": 20}}],
     "default_scope": "cxr"}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from surgical_aggregation.wire.privacy_json import PolicyError, is_class_names, scope_properties

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from nvflare.apis.fl_context import FLContext


@dataclass(frozen=True)
class SitePolicy:
    """A site's policy. Each attribute is a key of the scope's properties.

    Attributes:
        share: Classes that the site shares. Default None: all that it labels.
        min_images: Smallest number of training images for the site to participate. Default 0.
        min_positives: Smallest number of positive training labels for a class to be shared; from 1
            on, it also needs a negative one. Default 0.
        report_counts: Whether the number of images per class may leave the site, if a job requests
            it. If not, metrics are rounded; see `metrics.without_counts`. Default False.
        report_features: Whether mean and variance of the features of the site's images may leave
            it, if a job requests them. Default False.
        site_files: Folder of the site files. Default None: as the job configures.
        refuse_union_head: Whether the site stays out of jobs in which its head has classes that it
            does not label. Default False.
    """

    share: tuple[str, ...] | None = None
    min_images: int = 0
    min_positives: int = 0
    report_counts: bool = False
    report_features: bool = False
    site_files: str | None = None
    refuse_union_head: bool = False


NO_POLICY = SitePolicy(report_counts=True, report_features=True)
"""The policy of a site that has set none: everything a job requests is permitted."""


def site_policy(fl_ctx: FLContext) -> SitePolicy:
    """Read the site's policy for the running job; raises `PolicyError`."""
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


def withheld(
    policy: SitePolicy, classes: Sequence[str], training_labels: Callable[[], NDArray[np.float32]]
) -> dict[str, str]:
    """Classes that a site's policy withholds, with the reason.

    Args:
        policy: The policy.
        classes: The site's classes.
        training_labels: Returns the training labels, shape (images, classes); called only if the
            policy has a minimum.

    Returns:
        Withheld class -> reason.

    Raises:
        PolicyError: By its policy, the site must not participate.
    """
    stay = {}
    if policy.share is not None:
        stay = {name: "not in 'share'" for name in classes if name not in policy.share}
    if policy.min_images and len(training_labels()) < policy.min_images:
        raise PolicyError(
            f"this site's policy needs 'min_images' {policy.min_images} training images; there are "
            f"{len(training_labels())}."
        )
    if policy.min_positives:
        labels, needed = training_labels(), f"'min_positives' is {policy.min_positives}"
        for name, of_class in zip(classes, labels.T, strict=True):
            if (positives := (of_class == 1).sum()) < policy.min_positives:
                stay.setdefault(name, f"{positives} positives, {needed}")
            elif not (of_class < 0.5).any():
                stay.setdefault(name, f"no negatives, {needed}")
    if stay and len(stay) == len(classes):
        raise PolicyError(
            "this site's policy withholds all of its classes: "
            + "; ".join(f"{name} ({why})" for name, why in stay.items())
        )
    return stay


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "share": ("a list of class names", is_class_names),
    "min_images": ("a whole number, 0 or more", _is_count),
    "min_positives": ("a whole number, 0 or more", _is_count),
    "report_counts": ("true or false", lambda value: isinstance(value, bool)),
    "report_features": ("true or false", lambda value: isinstance(value, bool)),
    "site_files": ("the path of a folder", lambda value: isinstance(value, str) and bool(value)),
    "refuse_union_head": ("true or false", lambda value: isinstance(value, bool)),
}
