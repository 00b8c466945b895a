import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_context import M, make_mask

from flare import Engine, context
from surgical_aggregation.site.class_declaration import DeclareClasses
from surgical_aggregation.wire.headers import CLASSES, PROCESS


@pytest.fixture
def started(tmp_path):
    """Starts a run at a site: its context, and the notes that only the hospital sees."""

    def start(site, policy=None):
        engine = Engine(tmp_path, site=site)
        fl_ctx = context(engine=engine, policy=policy)
        DeclareClasses().handle_event(EventType.START_RUN, fl_ctx)
        return fl_ctx, engine.notes()

    return start


def test_a_process_declares_the_sites_classes_publicly_for_the_whole_run(site, started):
    (first, notes), (second, _) = started(site), started(site)
    assert first.get_all_public_props()[CLASSES] == ["Edema", "Nodule/Mass"]
    assert first.props[CLASSES][M] == make_mask(private=False, sticky=True)
    assert first.get_all_public_props()[PROCESS] != second.get_all_public_props()[PROCESS]
    assert notes == ""  # without a policy


def test_what_the_policy_withholds_is_said_once_in_the_sites_notes_alone(site, started, caplog):
    """The log does not tell whether it withholds anything: FLARE may stream any log."""
    caplog.set_level("INFO")
    logs = []
    for policy in ({"share": ["Edema", "Nodule/Mass"]}, {"share": ["Edema"]}):
        caplog.clear()
        fl_ctx, notes = started(site, policy)
        logs.append([r.getMessage() for r in caplog.records if "declared" not in r.getMessage()])
    assert logs[0] == logs[1]
    assert "local_notes/job.txt says what this site's policy withholds" in logs[0][0]
    assert notes.count("policy withholds: no class") == 1
    assert notes.count("policy withholds: Nodule/Mass (not in 'share')") == 1
    assert fl_ctx.get_all_public_props()[CLASSES] == ["Edema"]
    assert "Mass" not in str(fl_ctx.get_all_public_props()) + caplog.text


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"share": []}, "none of its classes"),
        ({"min_positives": 1}, "/data/p17.png is gone"),
        (None, "Site component with id 'site'"),
    ],
    ids=["kept away by its policy", "cannot count", "not there"],
)
def test_a_site_that_cannot_name_its_classes_declares_none(
    site, started, monkeypatch, caplog, policy, reason
):
    def broken(*args, **options):
        raise KeyError("/data/p17.png is gone")

    monkeypatch.setattr(site, "data", broken)
    fl_ctx, notes = started(site if policy else None, policy)
    assert CLASSES not in fl_ctx.get_all_public_props()
    assert "no classes to declare: " in notes and reason in notes
    assert "no classes to declare; local_notes/job.txt says why" in caplog.text
    assert reason not in caplog.text
