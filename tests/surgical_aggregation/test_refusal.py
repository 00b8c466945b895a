from flare import Engine, context
from surgical_aggregation.refusal import (
    CONTRIBUTION_REFUSED,
    LONGEST,
    REFUSAL,
    Refusal,
    announce,
)
from surgical_aggregation.run_record import RunRecord


def test_a_reason_is_never_long(logged):
    engine = Engine()
    fl_ctx = context("a", engine=engine)
    announce(RunRecord(), Refusal("a", 3, "x" * 10**6), fl_ctx)
    assert engine.events == [CONTRIBUTION_REFUSED]
    told = {"site": "a", "round": 3, "reason": "x" * LONGEST + " ..."}
    assert fl_ctx.get_prop(REFUSAL) == told
    assert len(logged["warning"][0]) < LONGEST + 100
