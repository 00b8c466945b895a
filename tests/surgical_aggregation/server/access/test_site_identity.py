import pytest
from nvflare.apis.client import Client
from nvflare.apis.fl_constant import FLContextKey, ReservedKey, ServerCommandKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

from surgical_aggregation.server.access.site_identity import claimed_site, set_site, site_of


def message(claims="south", **props):
    """The server's context of a message, as FLARE makes it, of a client that calls itself so."""
    fl_ctx, peer = FLContext(), FLContext()
    peer.set_prop(ReservedKey.IDENTITY_NAME, claims, private=False, sticky=False)
    fl_ctx.set_peer_context(peer)
    for name, value in props.items():
        fl_ctx.set_prop(name, value, private=True, sticky=False)
    return fl_ctx


def result(client):
    shareable = Shareable()
    shareable.set_header(ServerCommandKey.FL_CLIENT, client)
    return {FLContextKey.TASK_RESULT: shareable}


def test_a_site_is_who_sent_the_token_or_whom_the_workflow_names():
    fl_ctx = message(**result(Client("north", "token")))
    assert site_of(fl_ctx) == "north" and claimed_site(fl_ctx) == "south"
    fl_ctx = message()
    set_site("north", fl_ctx)
    assert site_of(fl_ctx) == "north"
    assert site_of(FLContext()) == "" == claimed_site(FLContext())  # the server's own


@pytest.mark.parametrize("props", [{}, result("south"), {FLContextKey.TASK_RESULT: "text"}])
def test_what_a_message_says_of_itself_is_nobodys_name(props):
    assert site_of(message(**props)) == ""


@pytest.mark.parametrize("claims", [10**5000, None, ["south"]], ids=["number", "none", "list"])
def test_what_is_no_name_is_none(claims):
    """A number of so many digits cannot even be written: it would end the round for all."""
    assert claimed_site(message(claims)) == ""
