"""Which sites a job has, and which of them a message comes from or goes to.

A site's name is that which FLARE's server has authenticated.
"""

from __future__ import annotations

from nvflare.apis.client import Client
from nvflare.apis.fl_constant import FLContextKey, ServerCommandKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_def import ALL_SITES, SERVER_SITE_NAME, JobMetaKey
from nvflare.apis.shareable import Shareable

from surgical_aggregation.wire import flare_internals

NOT_STARTED = "FLARE has not started the job there: it was not connected, or could not take it"

_SITE = "surgical.site"


def sites_of_job(fl_ctx: FLContext) -> list[str]:
    """Names of the sites that the job is for, also of those at which FLARE has not started it.

    They are in the `deploy_map` of the job's meta; with "@ALL" there, those at which it has.
    """
    meta = fl_ctx.get_prop(FLContextKey.JOB_META) or {}
    deployed = meta.get(JobMetaKey.DEPLOY_MAP.value, {}).values()
    named = {site for sites in deployed for site in sites} - {SERVER_SITE_NAME, ALL_SITES}
    return sorted(_started(fl_ctx) | named)


def not_started(fl_ctx: FLContext) -> dict[str, str]:
    """Site of the job at which FLARE has not started it -> why it takes no part."""
    started = _started(fl_ctx)
    return {site: NOT_STARTED for site in sites_of_job(fl_ctx) if site not in started}


def _started(fl_ctx: FLContext) -> set[str]:
    return {client.name for client in fl_ctx.get_engine().get_clients()}


def set_site(site: str, fl_ctx: FLContext) -> None:
    """Say whose message a context is about; only the workflow knows it when it sends a task."""
    fl_ctx.set_prop(_SITE, site, private=True, sticky=False)


def site_of(fl_ctx: FLContext) -> str:
    """Authenticated name of the site that a message comes from or goes to; empty: not known.

    Never what the message says of itself: the peer context is written by the client. Our own
    workflows say it; under any other it is the sender of a result, or the site that has the task.
    """
    site = fl_ctx.get_prop(_SITE)
    if site is not None:
        return site
    result = fl_ctx.get_prop(FLContextKey.TASK_RESULT)
    # FLARE's server puts the header there, over whatever came, by the token of the connection.
    client = (
        result.get_header(ServerCommandKey.FL_CLIENT) if isinstance(result, Shareable) else None
    )
    return client.name if isinstance(client, Client) else flare_internals.site_of_task(fl_ctx)


def claimed_site(fl_ctx: FLContext) -> str:
    """What the peer calls itself; empty where it is no text."""
    peer = fl_ctx.get_peer_context()
    name = peer.get_identity_name() if peer else ""
    return name if isinstance(name, str) else ""
