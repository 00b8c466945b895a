import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_context import M, make_mask

from flare import Engine, context
from surgical_aggregation.declaration import CLASSES, PROCESS, DeclareClasses
from tiny_site import TinySite


def started(site, policy=None, **args):
    fl_ctx = context(engine=Engine(site=site), policy=policy)
    DeclareClasses(**args).handle_event(EventType.START_RUN, fl_ctx)
    return fl_ctx


def test_a_site_declares_its_classes_publicly_for_the_whole_run(tmp_path):
    (tmp_path / "t.json").write_text('{"a": {"classes": ["Edema", "Nodule/Mass"], "images": 1}}')
    fl_ctx = started(TinySite("a", str(tmp_path / "t.json")))
    assert fl_ctx.get_all_public_props()[CLASSES] == ["Edema", "Nodule/Mass"]
    assert fl_ctx.props[CLASSES][M] == make_mask(private=False, sticky=True)


def test_every_process_declares_as_itself(north):
    first, second = (started(north).get_all_public_props()[PROCESS] for _ in range(2))
    assert first != second


@pytest.fixture
def north(tmp_path):
    table = tmp_path / "t.json"
    table.write_text('{"north": {"classes": ["Edema", "Nodule/Mass"], "images": 20}}')
    return TinySite("north", str(table))


def test_what_the_policy_withholds_is_not_declared_and_said_once_in_the_sites_log(north, caplog):
    caplog.set_level("INFO")
    fl_ctx = started(north, {"share": ["Edema"]})
    assert fl_ctx.get_all_public_props()[CLASSES] == ["Edema"]
    assert caplog.text.count("policy withholds: Nodule/Mass (not in 'share')") == 1
    assert "Mass" not in str(fl_ctx.get_all_public_props())
    assert not [r for r in caplog.records if r.levelname == "ERROR"]  # which FLARE may stream


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"share": []}, "none of its classes"),
        ({"share": "Edema"}, "'share' needs a list"),
        ({"min_images": 21}, "'min_images' 21"),
    ],
)
def test_a_site_whose_policy_keeps_it_away_declares_nothing(north, policy, reason, caplog):
    assert CLASSES not in started(north, policy).get_all_public_props()
    assert "no classes to declare: " in caplog.text and reason in caplog.text


def test_a_site_that_cannot_name_its_classes_declares_none_and_says_why(caplog):
    assert CLASSES not in started(None).get_all_public_props()
    assert "Site component with id 'site'" in caplog.text


@pytest.mark.parametrize("error", [OSError, MemoryError])
def test_a_site_whose_files_cannot_be_read_declares_nothing(north, monkeypatch, caplog, error):
    def broken(*args, **options):
        raise error("the disk is gone")

    monkeypatch.setattr(north, "data", broken)
    assert CLASSES not in started(north, {"min_positives": 1}).get_all_public_props()
    assert "no classes to declare: the disk is gone" in caplog.text
