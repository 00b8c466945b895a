"""What a server decides for itself, whatever a job asks for: which site may hold which classes.

The server's operator writes it into FLARE's `local/privacy.json` there, like a site its own (see
`site_policy`):

    {"scopes": [{"name": "cxr", "properties": {"permitted": {"nih": ["Edema", "Mass"]}}}],
     "default_scope": "cxr"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.site.contract.site_policy import (
    PolicyError,
    is_class_names,
    scope_properties,
)

Table = Mapping[str, Sequence[str]]
"""Site -> classes that it may hold; a site that is not in it may hold none."""


def tables(fl_ctx: FLContext, permitted: Table | None) -> tuple[Table, ...]:
    """All tables that hold for the running job, each of which must allow a class.

    Args:
        fl_ctx: Any context of the job, on the server.
        permitted: The job's own table; None: it has none.

    Raises:
        PolicyError: A table is not what it must be.
    """
    properties = scope_properties(fl_ctx, ["permitted"]) or {}
    own = [] if permitted is None else [("the job's configuration", permitted)]
    if "permitted" in properties:
        own.append(("the server's local/privacy.json", properties["permitted"]))
    for where, table in own:
        if not isinstance(table, Mapping) or not all(map(is_class_names, table.values())):
            raise PolicyError(
                f"{where}: 'permitted' needs a list of class names for each site; got {table!r}."
            )
    return tuple(table for _, table in own)
