from flare import Engine, context
from surgical_aggregation.server.access.refusal_events import Refusal, announce, announce_silence
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.wire.headers import CONTRIBUTION_REFUSED, REFUSAL, SITE_SILENT


def test_a_refusal_is_logged_and_told(logged):
    engine = Engine()
    fl_ctx = context("a", engine=engine)
    announce(RunRecord(), Refusal("a", "train", 3, "it has NaN"), fl_ctx)
    assert engine.events == [CONTRIBUTION_REFUSED]
    told = {"site": "a", "task": "train", "round": 3, "reason": "it has NaN"}
    assert fl_ctx.get_prop(REFUSAL) == told
    # A public property would travel to the sites, and a refusal may name another site's class.
    assert fl_ctx.get_prop_detail(REFUSAL) == {"value": told, "private": True, "sticky": False}
    assert logged["warning"] == ["refused the result of a, task 'train' of round 3: it has NaN."]


def test_so_is_a_site_that_is_silent(logged):
    engine = Engine()
    announce_silence(RunRecord(), Refusal("a", "test", None, "it is gone"), context(engine=engine))
    assert engine.events == [SITE_SILENT]
    assert logged["warning"] == ["no result of a, task 'test': it is gone."]
