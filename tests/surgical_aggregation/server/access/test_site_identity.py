import pytest
from nvflare.apis.client import Client
from nvflare.apis.fl_constant import FLContextKey, ReservedKey, ServerCommandKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

from surgical_aggregation.server.access.site_identity import claimed_site, set_site, site_of


def result(client):
    """A result as FLARE's server gets it: a header has the client of the connection's token."""
    shareable = Shareable()
    shareable.set_header(ServerCommandKey.FL_CLIENT, client)
    return shareable


@pytest.mark.parametrize(
    ("claims", "sent", "site", "claimed"),
    [
        ("south", result(Client("north", "token")), "north", "south"),
        ("south", None, "", "south"),
        ("south", result("south"), "", "south"),
        ("south", "text", "", "south"),
        (10**5000, None, "", ""),  # it cannot even be written: that would end the round for all
        (["south"], None, "", ""),
    ],
    ids=["token", "no result", "no client", "text", "long number", "list"],
)
def test_a_site_is_who_sent_the_token_or_whom_the_workflow_names(claims, sent, site, claimed):
    fl_ctx, peer = FLContext(), FLContext()
    assert site_of(fl_ctx) == "" == claimed_site(fl_ctx)  # the server's own
    peer.set_prop(ReservedKey.IDENTITY_NAME, claims, private=False, sticky=False)
    fl_ctx.set_peer_context(peer)
    fl_ctx.set_prop(FLContextKey.TASK_RESULT, sent, private=True, sticky=False)
    assert (site_of(fl_ctx), claimed_site(fl_ctx)) == (site, claimed)
    set_site("west", fl_ctx)
    assert site_of(fl_ctx) == "west"
