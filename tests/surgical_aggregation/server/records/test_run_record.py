import json

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.app_common.app_event_type import AppEventType
from nvflare.widgets.info_collector import GroupInfoCollector, InfoCollector

from flare import Engine, context
from surgical_aggregation import __version__
from surgical_aggregation.server.access.refusal import (
    Refusal,
    announce,
    announce_silence,
    drop_round,
)
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.wire.headers import (
    BEST,
    BEST_DROPPED,
    COLUMN_SIMILARITY,
    DROPPED,
    STOPPED,
    TRAINING_STOPPED,
)


def test_every_event_is_a_line_at_once(tmp_path):
    record = RunRecord()
    engine = Engine(tmp_path, record=record)
    path = tmp_path / "server" / "job" / "run_record.jsonl"

    def fire(event, **props):
        fl_ctx = context(current_round=2, engine=engine)
        for key, value in props.items():
            fl_ctx.set_prop(key, value, private=True, sticky=False)
        record.handle_event(event, fl_ctx)
        return json.loads(path.read_text(encoding="utf-8").splitlines()[-1])

    started = fire(EventType.START_RUN)
    assert started["version"] == __version__
    assert started["code"].endswith("surgical_aggregation")
    best = {"round": 1, "metric": "bce", "value": 0.25, "sites": {"é": 0.25}}
    line = fire(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, **{BEST: best})
    assert line == {"event": "best", **best}
    line = fire(AppEventType.INITIAL_MODEL_LOADED, **{BEST: best})  # of the run that is continued
    assert line == {"event": "best", **best}
    fire(AppEventType.INITIAL_MODEL_LOADED)  # a fresh run's
    line = fire(BEST_DROPPED, **{DROPPED: "other sites"})
    assert line == {"event": "best_dropped", "reason": "other sites"}
    stopped = {"round": 2, "best_round": 0, "patience": 2}
    assert fire(TRAINING_STOPPED, **{STOPPED: stopped}) == {"event": "stopped", **stopped}
    announce(record, Refusal("north", "train", 2, "it is late"), context(engine=engine))
    drop_round(record, 2, "it is not finite", context(engine=engine))
    fire(AppEventType.ROUND_STARTED)
    line = fire(AppEventType.ROUND_DONE, **{COLUMN_SIMILARITY: {"é": 0.5}})
    assert line["round"] == 2 and line["seconds"] >= 0 and line["column_similarity"] == {"é": 0.5}
    line = fire(EventType.FATAL_SYSTEM_ERROR, **{FLContextKey.EVENT_DATA: "no disk"})
    assert line == {"event": "failed", "reason": "no disk"}
    fire(EventType.END_RUN)
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    events = [entry["event"] for entry in lines]
    assert events == [
        "started", "best", "best", "best_dropped", "stopped", "refused", "dropped", "round",
        "failed", "ended",
    ]  # fmt: skip
    late = {"site": "north", "task": "train", "round": 2, "reason": "it is late"}
    assert lines[5] == {"event": "refused", **late}
    assert lines[6] == {"event": "dropped", "round": 2, "reason": "it is not finite"}


def test_of_a_flood_of_refusals_ten_are_told_and_the_others_counted(tmp_path):
    record = RunRecord()
    engine = Engine(tmp_path, record=record)
    record.handle_event(EventType.START_RUN, context(engine=engine))

    def refuse(site, times, task="train", round_=0):
        for _ in range(times):
            announce(record, Refusal(site, task, round_, "odd"), context(engine=engine))

    def lines():
        text = (tmp_path / "server/job/run_record.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()][1:]

    refuse("north", 13)
    refuse("south", 10)
    assert [line["site"] for line in lines()] == ["north"] * 10 + ["south"] * 10
    record.handle_event(AppEventType.ROUND_DONE, context(engine=engine))
    (told, _) = lines()[20:]
    of = {"site": "north", "task": "train", "round": 0}
    assert told == {"event": "refused_too", **of, "count": 3}
    refuse("north", 1, round_=1)  # of the next round, one by one again
    refuse("south", 12, task="test", round_=None)
    record.handle_event(EventType.END_WORKFLOW, context(engine=engine))
    assert [line["event"] for line in lines()[22:]] == ["refused"] * 11 + ["refused_too"]
    assert lines()[-1]["count"] == 2


def test_a_site_that_is_silent_leaves_a_line(tmp_path):
    record = RunRecord()
    engine = Engine(tmp_path, record=record)
    record.handle_event(EventType.START_RUN, context(engine=engine))
    silence = {"site": "north", "task": "test", "round": None, "reason": "no sign of life"}
    announce_silence(record, Refusal(**silence), context(engine=engine))
    last = (tmp_path / "server/job/run_record.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(last) == {"event": "silent", **silence}


def test_an_admin_is_told_how_far_the_run_is(tmp_path):
    record = RunRecord()
    engine = Engine(tmp_path, record=record)

    def told():
        collector = GroupInfoCollector()
        fl_ctx = context(engine=engine)
        key = InfoCollector.CTX_KEY_STATS_COLLECTOR
        fl_ctx.set_prop(key, collector, private=True, sticky=False)
        record.handle_event(InfoCollector.EVENT_TYPE_GET_STATS, fl_ctx)
        return collector.info["RunRecord"]

    def fire(event, **props):
        fl_ctx = context(engine=engine)
        for key, value in props.items():
            fl_ctx.set_prop(key, value, private=True, sticky=False)
        record.handle_event(event, fl_ctx)

    fire(EventType.START_RUN)
    assert told() == {"rounds": 0, "best": None, "stopped": False}
    best = {"round": 1, "metric": "bce", "value": 0.25, "sites": {"a": 0.25}}
    fire(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, **{BEST: best})
    fire(AppEventType.ROUND_DONE)
    assert told() == {"rounds": 1, "best": best, "stopped": False}
    fire(BEST_DROPPED, **{DROPPED: "other sites"})
    fire(TRAINING_STOPPED, **{STOPPED: {"round": 1}})
    assert told() == {"rounds": 1, "best": None, "stopped": True}
