from flare import Engine, context
from surgical_aggregation.server.access.refusal_events import (
    Refusal,
    announce,
    announce_silence,
    drop_round,
)
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.wire.headers import (
    CONTRIBUTION_REFUSED,
    DROP,
    REFUSAL,
    ROUND_DROPPED,
    SITE_SILENT,
)


def test_a_refusal_is_logged_and_told(logged):
    engine = Engine()
    fl_ctx = context("a", engine=engine)
    announce(RunRecord(), Refusal("a", "train", 3, "it has NaN"), fl_ctx)
    assert engine.events == [CONTRIBUTION_REFUSED]
    told = {"site": "a", "task": "train", "round": 3, "reason": "it has NaN"}
    # A public property would travel to the sites, and a refusal may name another site's class.
    assert fl_ctx.get_prop_detail(REFUSAL) == {"value": told, "private": True, "sticky": False}
    assert logged["warning"] == ["refused the result of a, task 'train' of round 3: it has NaN."]


def test_so_is_a_site_that_is_silent(logged):
    engine = Engine()
    announce_silence(RunRecord(), Refusal("a", "test", None, "it is gone"), context(engine=engine))
    assert engine.events == [SITE_SILENT]
    assert logged["warning"] == ["no result of a, task 'test': it is gone."]


def test_so_is_a_round_that_is_dropped(logged):
    engine = Engine()
    fl_ctx = context(engine=engine)
    drop_round(RunRecord(), 3, "it is not finite", fl_ctx)
    assert engine.events == [ROUND_DROPPED]
    told = {"round": 3, "reason": "it is not finite"}
    assert fl_ctx.get_prop_detail(DROP) == {"value": told, "private": True, "sticky": False}
    assert logged["error"] == ["round 3 is dropped: it is not finite"]
