"""Whether a body is that of a site's network, by the names and shapes of its variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surgical_aggregation.site.contract.site import SiteError

Shapes = Mapping[str, tuple[int, ...] | None]
"""Path of a variable -> its shape; None: not known."""


def shapes_of(variables: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of arrays or variables by path."""
    return {path: tuple(value.shape) for path, value in variables.items()}


def check_body(body: Shapes, own: Shapes, network: str = "") -> None:
    """Refuse a server's body with other paths or shapes than the network's own variables.

    `network` says how the networks differ, as far as known.

    Raises:
        SiteError: They differ.
    """
    differ = sorted(body.keys() ^ own.keys())
    if not differ:
        differ = sorted(path for path in own if body[path] not in (None, own[path]))
    if differ:
        raise SiteError(
            f"the server's body and this site's differ in {len(differ)} variables, e.g. "
            f"{differ[:3]}{network}. Start the run from an initial body of the same backbone and "
            "image size as the sites' model, in which every layer and weight has a name: Keras "
            "numbers those that have none by what the process has made before."
        )
