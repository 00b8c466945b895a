import pytest

from flare import Engine, context
from surgical_aggregation.server.access.refusal_events import (
    Refusal,
    announce,
    announce_silence,
    drop_round,
)
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.wire import headers

NAN = {"site": "a", "task": "train", "round": 3, "reason": "it has NaN"}
GONE = {"site": "a", "task": "test", "round": None, "reason": "it is gone"}
DROP = {"round": 3, "reason": "it is not finite"}


@pytest.mark.parametrize(
    ("tell", "facts", "event", "name", "text"),
    [
        (announce, [Refusal(**NAN)], headers.CONTRIBUTION_REFUSED, headers.REFUSAL,
         "refused the result of a, task 'train' of round 3: it has NaN."),
        (announce_silence, [Refusal(**GONE)], headers.SITE_SILENT, headers.REFUSAL,
         "no result of a, task 'test': it is gone."),
        (drop_round, DROP.values(), headers.ROUND_DROPPED, headers.DROP,
         "round 3 is dropped: it is not finite"),
    ],
    ids=["a refusal", "a site that is silent", "a round that is dropped"],
)  # fmt: skip
def test_is_logged_and_told_to_the_servers_components(tell, facts, event, name, text, logged):
    engine = Engine()
    fl_ctx = context("a", engine=engine)
    tell(RunRecord(), *facts, fl_ctx)
    assert engine.events == [event] and logged["warning"] + logged["error"] == [text]
    told = next(one for one in (NAN, GONE, DROP) if one["reason"] in text)
    # A public property would travel to the sites, and a refusal may name another site's class.
    assert fl_ctx.get_prop_detail(name) == {"value": told, "private": True, "sticky": False}
