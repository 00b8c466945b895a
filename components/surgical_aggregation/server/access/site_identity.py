"""Which site a message comes from or goes to, as FLARE's server has authenticated it."""

from __future__ import annotations

from nvflare.apis.client import Client
from nvflare.apis.fl_constant import FLContextKey, ServerCommandKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

_SITE = "surgical.site"


def set_site(site: str, fl_ctx: FLContext) -> None:
    """Say whose message a context is about; only a workflow knows it when it sends a task.

    Args:
        site: Name of the client that FLARE has authenticated.
        fl_ctx: Context of the message, on the server.
    """
    fl_ctx.set_prop(_SITE, site, private=True, sticky=False)


def site_of(fl_ctx: FLContext) -> str:
    """Name of the site that a message comes from or goes to, on the server.

    Never what the message says of itself: the peer context is written by the client.

    Args:
        fl_ctx: Context of a message from or to a site.

    Returns:
        The name; empty where FLARE's server has authenticated nobody for this message.
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
    """What the peer calls itself; empty where it says nothing that is a name.

    Args:
        fl_ctx: Context of a message from or to a site, on the server.
    """
    peer = fl_ctx.get_peer_context()
    name = peer.get_identity_name() if peer else ""
    return name if isinstance(name, str) else ""
