import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_context import M, make_mask

from flare import Engine, context
from surgical_aggregation.declaration import (
    CLASSES,
    DeclareClasses,
    declared_classes,
    peer_name,
)
from tiny_site import TinySite


def started(site, **args):
    fl_ctx = context(engine=Engine(site=site))
    DeclareClasses(**args).handle_event(EventType.START_RUN, fl_ctx)
    return fl_ctx


def test_a_site_declares_its_classes_publicly_for_the_whole_run(tmp_path):
    (tmp_path / "t.json").write_text('{"a": {"classes": ["Edema", "Nodule/Mass"], "images": 1}}')
    fl_ctx = started(TinySite("a", str(tmp_path / "t.json")))
    assert fl_ctx.get_all_public_props()[CLASSES] == ["Edema", "Nodule/Mass"]
    assert fl_ctx.props[CLASSES][M] == make_mask(private=False, sticky=True)


def test_a_site_that_cannot_name_its_classes_declares_none_and_says_why(caplog):
    assert CLASSES not in started(None).get_all_public_props()
    assert "Site component with id 'site'" in caplog.text


def test_the_server_reads_what_the_peer_declared():
    fl_ctx = context("north", classes=["Edema"])
    assert declared_classes(fl_ctx) == ("Edema",)
    assert peer_name(fl_ctx) == "north"


@pytest.mark.parametrize("declared", [[], [1], ["Edema", None]])
def test_what_is_no_list_of_names_counts_as_nothing(declared):
    assert declared_classes(context("north", classes=declared)) == ()
