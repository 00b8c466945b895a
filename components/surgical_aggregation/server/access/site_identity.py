"""Which site a message comes from or goes to, as FLARE's server has authenticated it."""

from __future__ import annotations

from nvflare.apis.client import Client
from nvflare.apis.fl_constant import FLContextKey, ServerCommandKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

_SITE = "surgical.site"


def set_site(site: str, fl_ctx: FLContext) -> None:
    """Say whose message a context is about; only the workflow knows it when it sends a task."""
    fl_ctx.set_prop(_SITE, site, private=True, sticky=False)


def site_of(fl_ctx: FLContext) -> str:
    """Authenticated name of the site that a message comes from or goes to; empty: nobody's.

    Never what the message says of itself: the peer context is written by the client.
    """
    site = fl_ctx.get_prop(_SITE)
    if site is not None:
        return site
    result = fl_ctx.get_prop(FLContextKey.TASK_RESULT)
    # FLARE's server puts the header there, over whatever came, by the token of the connection.
    client = (
        result.get_header(ServerCommandKey.FL_CLIENT) if isinstance(result, Shareable) else None
    )
    return client.name if isinstance(client, Client) else ""


def claimed_site(fl_ctx: FLContext) -> str:
    """What the peer calls itself; empty where it is no text."""
    peer = fl_ctx.get_peer_context()
    name = peer.get_identity_name() if peer else ""
    return name if isinstance(name, str) else ""
