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
    ("declared", "counted"),
    [(["Edema"], ("Edema",)), ([], ()), ([1], ()), (["Edema", None], ())],
)
def test_a_declaration_is_a_list_of_names(declared, counted):
    assert declared_classes(context("north", classes=declared)) == counted


def test_nobody_declares_under_anothers_name_or_an_unprintable_class():
    fl_ctx = context("west", classes=["Edema"], claims="north")
    assert declared_classes(fl_ctx) == () == permitted_classes(fl_ctx, {"north": ["Edema"]})
    assert declaration_fault(fl_ctx) == "it calls itself 'north'"
    fl_ctx = context("north", classes=["Edema", "Ma\nss"])
    assert declared_classes(fl_ctx) == ()
    assert "printable text without outer spaces; got 'Ma\\nss'" in declaration_fault(fl_ctx)


def test_a_declaration_stands_for_the_whole_run(message):
    hold_to_declaration(message())
    again = message(classes=["Edema", "Mass"])
    assert declared_classes(again) == ()
    assert "declares ['Edema', 'Mass'], and has declared ['Edema'] before" in declaration_fault(
        again
    )
    hold_to_declaration(again)  # which does not make it good
    assert declaration_fault(again)
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


class TestTables:
    def test_there_may_be_none_either_or_both(self):
        job, server = {"a": ["Edema"]}, {"a": ["Mass"], "b": []}
        assert tables(context(), None) == tables(context(policy={}), None) == ()
        assert tables(context(), job) == (job,)
        assert tables(context(policy={"permitted": server}), None) == (server,)
        assert tables(context(policy={"permitted": server}), job) == (job, server)

    @pytest.mark.parametrize("table", [None, ["Edema"], {"a": "Edema"}, {"a": [1]}, {"a": None}])
    def test_one_that_is_malformed_is_refused_by_where_it_stands(self, table):
        with pytest.raises(PolicyError, match=r"^the server's local/privacy.json: 'permitted' nee"):
            tables(context(policy={"permitted": table}), None)
        if table is not None:
            with pytest.raises(PolicyError, match=r"^the job's configuration: 'permitted' needs a"):
                tables(context(), table)

    @pytest.mark.parametrize("key", ["permited", "share"])
    def test_another_key_is_refused(self, key):
        with pytest.raises(PolicyError, match=f"may have the keys permitted; got .*{key}"):
            tables(context(policy={key: {}}), None)
