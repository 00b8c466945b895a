"""Who sent a message, which classes that site declares, and how a refusal is announced."""

import pytest
from nvflare.apis.client import Client
from nvflare.apis.fl_constant import FLContextKey, ServerCommandKey
from nvflare.apis.fl_context import FLContextManager
from nvflare.apis.shareable import Shareable

from flare import Engine, context
from surgical_aggregation.server.access import job_sites
from surgical_aggregation.server.access.job_sites import declaration_fault, declared_classes
from surgical_aggregation.server.access.refusal_events import announce
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.wire import headers
from surgical_aggregation.wire.privacy_json import PolicyError


def result(client):
    """A result as FLARE's server gets it: a header has the client of the connection's token."""
    shareable = Shareable()
    shareable.set_header(ServerCommandKey.FL_CLIENT, client)
    return shareable


@pytest.mark.parametrize(("claims", "sent", "site", "claimed"), [
    ("south", result(Client("north", "token")), "north", "south"),
    *(("south", sent, "", "south") for sent in (None, result("south"), "text")),
    (10**5000, None, "", ""),  # it cannot even be written: that would end the round for all
    (["south"], None, "", ""),
], ids=["token", "no result", "no client", "text", "long number", "list"])  # fmt: skip
def test_a_site_is_who_sent_the_token_or_whom_the_workflow_names(claims, sent, site, claimed):
    own = context()  # the server's
    assert job_sites.site_of(own) == "" == job_sites.claimed_site(own)
    props = {FLContextKey.TASK_RESULT: sent}
    fl_ctx = context("west", claims=claims, authenticated=False, props=props)
    assert (job_sites.site_of(fl_ctx), job_sites.claimed_site(fl_ctx)) == (site, claimed)
    job_sites.set_site("west", fl_ctx)
    assert job_sites.site_of(fl_ctx) == "west"


@pytest.fixture
def message():
    """Contexts of messages in one run, which share sticky properties."""
    manager = FLContextManager(identity_name="server", job_id="job")

    def message(site="north", classes=("Edema",), **facts):
        return context(site, classes=classes, manager=manager, **facts)

    return message


@pytest.mark.parametrize(("declared", "claims", "counted", "fault"), [
    (["Edema"], None, ("Edema",), None),
    *((names, None, (), None) for names in ([], [1], ["Edema", None])),
    (["Edema", "Ma\nss"], None, (), "printable text without outer spaces; got 'Ma\\nss'"),
    (["Edema"], "north", (), "it calls itself 'north'"),
    ([f"{n}" for n in range(1001)], None, (), "it declares 1001 classes, and a site may have 1000"),
])  # fmt: skip
def test_a_declaration_is_names_that_a_site_gives_under_its_own(declared, claims, counted, fault):
    fl_ctx = context("west", declared, claims=claims)
    all_sites = {"north": ["Edema"], "west": ["Edema"]}
    assert declared_classes(fl_ctx) == counted == job_sites.permitted_classes(fl_ctx, all_sites)
    found = declaration_fault(fl_ctx)
    assert found is None if fault is None else fault in found


def test_a_declaration_stands_for_the_whole_run(message):
    job_sites.bind_declaration(message())
    again = message(classes=["Edema", "Mass"])
    assert declared_classes(again) == ()
    fault = "declares ['Edema', 'Mass'], but declared ['Edema'] before"
    assert fault in declaration_fault(again)
    assert declaration_fault(again).endswith("or join the next job with the new ones")
    job_sites.bind_declaration(again)  # which does not make it good
    assert fault in declaration_fault(again)
    assert declared_classes(message()) == ("Edema",)


def test_an_impostor_does_not_change_what_the_victim_is_held_to(message):
    job_sites.bind_declaration(message("north"))
    job_sites.bind_declaration(message("west", classes=["Mass"], claims="north"))
    assert declared_classes(message("north")) == ("Edema",)
    assert declared_classes(message("west", classes=["Fracture"])) == ("Fracture",)


@pytest.mark.parametrize("table", [
    ["Edema"], {"a": "Edema"}, {"a": [1]}, {"a": None}, {"a": [], "heart": {"a": []}},
])  # fmt: skip
def test_a_malformed_table_is_refused_by_where_it_stands(table):
    for policy in (table, None):
        with pytest.raises(PolicyError, match=r"^the server's local/privacy.json: 'permitted' nee"):
            job_sites.tables(context(policy={"permitted": policy}), None)
    with pytest.raises(PolicyError, match=r"^the job's configuration: 'permitted' needs a"):
        job_sites.tables(context(), table)
    keys = r"may have the keys permitted, look_alikes; got .*permited"
    with pytest.raises(PolicyError, match=keys):
        job_sites.tables(context(policy={"permited": {}}), None)


ODD = {"site": "a", "task": "train", "round": 3, "reason": "it is odd"}
GONE = {"site": "a", "task": "test", "round": None, "reason": "it is gone"}


@pytest.mark.parametrize(("facts", "event", "text"), [
    (ODD, headers.CONTRIBUTION_REFUSED,
     "refused the result of a, task 'train' of round 3: it is odd"),
    (GONE, headers.REQUEST_REFUSED, "sent no columns at the request of a, task 'test': it is gone"),
    (GONE, headers.SITE_SILENT, "no result of a, task 'test': it is gone"),
])  # fmt: skip
def test_is_logged_and_told_to_the_servers_components(facts, event, text, logged):
    engine = Engine()
    fl_ctx = context("a", engine=engine)
    announce(RunRecord(), fl_ctx, *facts.values(), event)
    assert engine.events == [event] and logged["warning"] == [f"{text}."]
    # A public property would travel to the sites, and a refusal may name another site's class.
    detail = {"value": facts, "private": True, "sticky": False}
    assert fl_ctx.get_prop_detail(headers.REFUSAL) == detail
