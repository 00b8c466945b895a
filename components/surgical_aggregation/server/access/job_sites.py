"""The sites of a job: who sent a message, which classes a site declares, and which it may train.

A site is identified by the name that FLARE's server has authenticated. Its classes are those of its
first declaration, as far as the server permits them.

The server's operator sets permitted classes in the server's `local/privacy.json`, as a site sets
its policy in its own (see `site_policy`):

    {"scopes": [{"name": "cxr", "properties": {"permitted": {"nih": ["Edema", "Mass"]}}}],
     "default_scope": "cxr"}

or a table per FLARE study, `{"heart": {"nih": ["Edema"]}}`: then a job of a study without a table
trains nothing. FLARE assigns jobs without a study to the study "default".
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nvflare.apis.client import Client
from nvflare.apis.fl_constant import FLContextKey, ServerCommandKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_def import ALL_SITES, SERVER_SITE_NAME, get_job_meta_study
from nvflare.apis.shareable import Shareable

from surgical_aggregation.aggregation.class_names import unfit
from surgical_aggregation.aggregation.site_result import Limits
from surgical_aggregation.wire import flare_internals, headers, privacy_json
from surgical_aggregation.wire.versions import parse_versions, version_fault

NOT_STARTED = "FLARE has not started the job there: it was not connected, or could not run it"

_SITE = "surgical.site"

Table = Mapping[str, Sequence[str]]
"""Site -> classes that it may train; a site that is not in the table may train none."""

POLICY = ("permitted", "look_alikes")
"""Keys of the server's policy; for the second see the module `look_alikes`."""

_DECLARATIONS = "surgical.declarations"


def sites_of_job(fl_ctx: FLContext) -> list[str]:
    """Names of the job's sites, including those where FLARE has not started it.

    They are those of `deploy_map` in the job's meta; if that is "@ALL", the sites where the job has
    started.
    """
    named = flare_internals.participants(fl_ctx) - {SERVER_SITE_NAME}
    return sorted(_started(fl_ctx) | {name for name in named if name.upper() != ALL_SITES})


def not_started(fl_ctx: FLContext) -> dict[str, str]:
    """Site of the job where FLARE has not started it -> the reason that it does not participate."""
    started = _started(fl_ctx)
    return {site: NOT_STARTED for site in sites_of_job(fl_ctx) if site not in started}


def _started(fl_ctx: FLContext) -> set[str]:
    return {client.name for client in fl_ctx.get_engine().get_clients()}


def set_site(site: str, fl_ctx: FLContext) -> None:
    """Record the site of a context's message; a workflow knows it when it sends a task."""
    fl_ctx.set_prop(_SITE, site, private=True, sticky=False)


def site_of(fl_ctx: FLContext) -> str:
    """Authenticated name of the site that a message comes from or goes to; empty: unknown.

    Never read from the message itself, whose peer context is written by the client. Our workflows
    set it (`set_site`); under any other workflow it is the sender of a result, or the site that
    holds the task.
    """
    site: str | None = fl_ctx.get_prop(_SITE)
    if site is not None:
        return site
    result = fl_ctx.get_prop(FLContextKey.TASK_RESULT)
    # FLARE's server overwrites this header by the token of the connection.
    client = isinstance(result, Shareable) and result.get_header(ServerCommandKey.FL_CLIENT)
    if isinstance(client, Client):
        return str(client.name)
    return flare_internals.site_of_task(fl_ctx)


def claimed_site(fl_ctx: FLContext) -> str:
    """The name that the peer uses for itself; empty if it is not a text."""
    peer = fl_ctx.get_peer_context()
    name = peer.get_identity_name() if peer else ""
    return name if isinstance(name, str) else ""


class Declaration(NamedTuple):
    """What a site declares with every message.

    Attributes:
        classes: Names of the site's classes; empty if it declares no list of names.
        versions: Package -> version, see `versions`; empty if it sends none.
    """

    classes: tuple[str, ...]
    versions: Mapping[str, str]


def declared_classes(fl_ctx: FLContext) -> tuple[str, ...]:
    """Classes that the site of a message declares; empty if `declaration_fault` has a reason."""
    return () if declaration_fault(fl_ctx) else declaration(fl_ctx).classes


def declaration_fault(fl_ctx: FLContext) -> str | None:
    """Why the declaration of a message's site is invalid; None: it is valid.

    A site must use the name that FLARE has authenticated, and keep the classes of its first
    declaration, after a restart too. It may have `Limits().site_classes`; their names must be
    printable (the aggregator limits their length). Its version must match the server's, see
    `versions`.
    """
    site = site_of(fl_ctx)
    if claimed_site(fl_ctx) != site:
        return f"it calls itself {claimed_site(fl_ctx)!r}"
    now, first = declaration(fl_ctx), _declarations(fl_ctx).get(site)
    if reason := version_fault(now.versions):
        return reason
    if (number := len(now.classes)) > (most := Limits().site_classes):
        return f"it declares {number} classes, and a site may have {most}"
    if reason := next(filter(None, (unfit(name, sys.maxsize) for name in now.classes)), None):
        return reason
    if first is None or first.classes == now.classes:
        return None
    return (
        f"it declares {list(now.classes)}, but declared {list(first.classes)} before; a site's "
        "classes hold for the whole job: restore them, or join the next job with the new ones"
    )


def bind_declaration(fl_ctx: FLContext) -> None:
    """Bind the site of a message to its present declaration, if that is valid."""
    if declaration_fault(fl_ctx) is None:
        declarations = {**_declarations(fl_ctx), site_of(fl_ctx): declaration(fl_ctx)}
        fl_ctx.set_prop(_DECLARATIONS, declarations, private=True, sticky=True)


def sites_by_class(fl_ctx: FLContext) -> dict[str, list[str]]:
    """Class -> sites that have declared it in this job, sorted by name."""
    found: dict[str, list[str]] = {}
    for site, declaration in sorted(_declarations(fl_ctx).items()):
        for name in declaration.classes:
            found.setdefault(name, []).append(site)
    return found


def versions_by_site(fl_ctx: FLContext) -> dict[str, Mapping[str, str]]:
    """Site -> the versions that it declared in this job, sorted by name."""
    return {site: its.versions for site, its in sorted(_declarations(fl_ctx).items())}


def unpermitted(fl_ctx: FLContext, permitted: Table | None) -> str | None:
    """Why the site of a message may not train all of its declared classes; None: it may."""
    beyond = set(declared_classes(fl_ctx)) - set(permitted_classes(fl_ctx, permitted))
    if not beyond:
        return None
    return (
        f"the site is not permitted to train {sorted(beyond)}: add them to the server's table, or "
        "remove them from the site's classes"
    )


def permitted_classes(fl_ctx: FLContext, permitted: Table | None) -> tuple[str, ...]:
    """Classes that the site of a message declares and that all `tables` permit.

    Empty if a table is malformed, for which `PermittedFilter` ends the run.
    """
    try:
        allowed = [set(table.get(site_of(fl_ctx), ())) for table in tables(fl_ctx, permitted)]
    except privacy_json.PolicyError:
        return ()
    return tuple(name for name in declared_classes(fl_ctx) if all(name in a for a in allowed))


def tables(fl_ctx: FLContext, permitted: Table | None) -> tuple[Table, ...]:
    """All tables of permitted classes: the job's, and the server policy's for the job's study.

    Raises:
        PolicyError: A table is malformed.
    """
    properties = privacy_json.scope_properties(fl_ctx, POLICY) or {}
    own = [] if permitted is None else [("the job's configuration", permitted)]
    if "permitted" in properties:
        table = properties["permitted"]
        if privacy_json.by_study(table):
            table = table.get(study(fl_ctx), {})
        own.append(("the server's local/privacy.json", table))
    for where, table in own:
        named = privacy_json.is_class_names
        if not isinstance(table, Mapping) or not all(map(named, table.values())):
            raise privacy_json.PolicyError(
                f"{where}: 'permitted' needs a list of class names for each site; got {table!r}."
            )
    return tuple(table for _, table in own)


def study(fl_ctx: FLContext) -> str:
    """FLARE's study of the running job, set by the server from the submitter's session."""
    return str(get_job_meta_study(fl_ctx.get_prop(FLContextKey.JOB_META)))


def _declarations(fl_ctx: FLContext) -> Mapping[str, Declaration]:
    return fl_ctx.get_prop(_DECLARATIONS, {})


def declaration(fl_ctx: FLContext) -> Declaration:
    """The declaration of a message's site, valid or not."""
    peer = fl_ctx.get_peer_context() or FLContext()
    classes, versions = map(peer.get_prop, (headers.CLASSES, headers.VERSIONS))
    if not isinstance(classes, (list, tuple)) or not all(isinstance(c, str) for c in classes):
        classes = ()
    return Declaration(tuple(classes), parse_versions(versions))
