import pytest
from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.fl_context import FLContextManager

from flare import context
from surgical_aggregation.server.access.declared_classes import (
    declaration_fault,
    declared_classes,
    hold_to_declaration,
    permitted_classes,
    tables,
)
from surgical_aggregation.wire.privacy_json import PolicyError


@pytest.fixture
def message():
    """Contexts of messages in one run, which share what is sticky."""
    manager = FLContextManager(identity_name="server", job_id="job")

    def message(site="north", classes=("Edema",), **said):
        fl_ctx = context(site, classes=classes, **said)
        fl_ctx.put(ReservedKey.MANAGER, manager, private=True, sticky=False)
        return fl_ctx

    return message


@pytest.mark.parametrize(
    ("declared", "claims", "counted", "fault"),
    [
        (["Edema"], None, ("Edema",), None),
        ([], None, (), None),
        ([1], None, (), None),
        (["Edema", None], None, (), None),
        (["Edema", "Ma\nss"], None, (), "printable text without outer spaces; got 'Ma\\nss'"),
        (["Edema"], "north", (), "it calls itself 'north'"),
    ],
)
def test_a_declaration_is_a_list_of_names_that_a_site_gives_under_its_own(
    declared, claims, counted, fault
):
    fl_ctx = context("west", declared, claims=claims)
    everybody = {"north": ["Edema"], "west": ["Edema"]}
    assert declared_classes(fl_ctx) == counted == permitted_classes(fl_ctx, everybody)
    found = declaration_fault(fl_ctx)
    assert found is None if fault is None else fault in found


def test_a_declaration_stands_for_the_whole_run(message):
    hold_to_declaration(message())
    again = message(classes=["Edema", "Mass"])
    assert declared_classes(again) == ()
    fault = "declares ['Edema', 'Mass'], and has declared ['Edema'] before"
    assert fault in declaration_fault(again)
    hold_to_declaration(again)  # which does not make it good
    assert fault in declaration_fault(again)
    assert declared_classes(message()) == ("Edema",)


def test_another_process_of_the_site_may_declare_others(message):
    hold_to_declaration(message(process="first"))
    second = message(classes=["Mass"], process="second")
    assert declared_classes(second) == ()  # with a result: only when it asks for a task
    assert declaration_fault(second, asking=True) is None
    hold_to_declaration(second)
    assert declared_classes(second) == ("Mass",)
    assert declared_classes(message(classes=["Fracture"], process="second")) == ()


def test_an_impostor_does_not_change_what_the_victim_is_held_to(message):
    hold_to_declaration(message("north"))
    hold_to_declaration(message("west", classes=["Mass"], claims="north", process="other"))
    assert declared_classes(message("north")) == ("Edema",)
    assert declared_classes(message("west", classes=["Fracture"])) == ("Fracture",)


@pytest.mark.parametrize("table", [["Edema"], {"a": "Edema"}, {"a": [1]}, {"a": None}])
def test_a_malformed_table_is_refused_by_where_it_stands(table):
    for policy in (table, None):
        with pytest.raises(PolicyError, match=r"^the server's local/privacy.json: 'permitted' nee"):
            tables(context(policy={"permitted": policy}), None)
    with pytest.raises(PolicyError, match=r"^the job's configuration: 'permitted' needs a"):
        tables(context(), table)
    with pytest.raises(PolicyError, match=r"may have the keys permitted; got .*permited"):
        tables(context(policy={"permited": {}}), None)
