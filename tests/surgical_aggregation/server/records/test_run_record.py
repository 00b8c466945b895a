import json

import pytest
from nvflare.apis.dxo import from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_exception import NotReadyToEndRun
from nvflare.apis.utils.event import fire_event_to_components
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.widgets.info_collector import GroupInfoCollector, InfoCollector

from flare import Engine, context, result
from surgical_aggregation import __version__
from surgical_aggregation.server.access.refusal_events import announce
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.wire import headers


class Run:
    """A run with its record: fires events and reads the lines."""

    def __init__(self, folder):
        self.record = RunRecord()
        self.engine = Engine(folder, record=self.record)
        self.path = folder / "server" / "job" / "run_record.jsonl"
        self.fire(EventType.START_RUN)

    def fire(self, event, site=None, **props):
        """Fire an event; returns the last line."""
        fl_ctx = context(site, current_round=2, engine=self.engine, props=props)
        self.record.handle_event(event, fl_ctx)
        return self.lines()[-1]

    def refuse(self, site, times=1, task="train", round_=0):
        for _ in range(times):
            announce(self.record, context(engine=self.engine), site, task, round_, "odd")

    def lines(self):
        return [json.loads(text) for text in self.path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


BEST_MODEL = {"round": 1, "metric": "bce", "value": 0.25, "sites": {"é": 0.25}}
STOP = {"round": 2, "best_round": 0, "patience": 2}
LATE = {"site": "north", "task": "test", "round": None, "reason": "it is late"}
DROPPED_ROUND = {"round": 2, "reason": "it is not finite"}


@pytest.mark.parametrize(("event", "name", "facts", "line"), [
    (AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, headers.BEST, BEST_MODEL, "best"),
    (AppEventType.INITIAL_MODEL_LOADED, headers.BEST, BEST_MODEL, "best"),
    (headers.BEST_DROPPED, headers.DROPPED, {"reason": "other sites"}, "best_dropped"),
    (headers.TRAINING_STOPPED, headers.STOPPED, STOP, "stopped"),
    (headers.CONTRIBUTION_REFUSED, headers.REFUSAL, LATE, "refused"),
    (headers.SITE_SILENT, headers.REFUSAL, LATE, "silent"),
    (headers.REQUEST_REFUSED, headers.REFUSAL, LATE, "request_refused"),
    (headers.ROUND_DROPPED, headers.DROP, DROPPED_ROUND, "dropped"),
    (headers.LOOK_ALIKE, headers.ALIKE, {"classes": {"a": ["b"]}, "reason": "c"}, "look_alike"),
    (EventType.FATAL_SYSTEM_ERROR, FLContextKey.EVENT_DATA, "no disk", "failed"),
])  # fmt: skip
def test_an_event_is_a_line_at_once(run, event, name, facts, line):
    expected = facts if isinstance(facts, dict) else {"reason": facts}
    expected |= {"kind": None, "began": False} if line == "failed" else {}
    assert run.fire(event, **{name: facts}) == {"event": line, **expected}


def test_a_filter_is_a_line_once_for_each_site_whose_results_it_took_part_in(run):
    sent_by = [("a", False, ["lost"]), ("a", True, None), ("a", True, ["SVT", "SVT"])]
    for site, accepted, names in [*sent_by, ("a", True, ["SVT"]), ("b", True, ["SVT", "x\ny"])]:
        dxo = from_shareable(result({}, {}))
        dxo.add_filter_history(names)
        sent = {AppConstants.TRAINING_RESULT: dxo.to_shareable()}  # as under FLARE's FedAvg
        taken = {AppConstants.AGGREGATION_ACCEPTED: accepted}
        run.fire(AppEventType.AFTER_CONTRIBUTION_ACCEPT, site, **sent, **taken)
    filters = [(line["site"], line["filter"]) for line in run.lines()[2:]]
    assert filters == [("a", "SVT"), ("b", "SVT"), ("b", "x\\ny")]


class Raising(FLComponent):
    """Raises in every event, also when the run is ended for that."""

    def handle_event(self, event_type, fl_ctx):
        raise AttributeError("no 'METRICS_SELECTION_INFO'")


@pytest.mark.parametrize("event", [AppEventType.TRAINING_STARTED, AppEventType.ROUND_STARTED])
def test_what_a_component_raises_at_an_event_ends_the_run_once_and_by_name(run, event):
    not_ready = {FLContextKey.EXCEPTIONS: {"Sender": NotReadyToEndRun()}}
    assert run.fire(EventType.CHECK_END_RUN_READINESS, **not_ready)["event"] == "sites"
    handlers = [Raising(), run.record]
    run.engine.fire_event = lambda event, fl_ctx: fire_event_to_components(event, handlers, fl_ctx)
    for _ in range(2):
        run.engine.fire_event(event, context(engine=run.engine))
    reason = "Raising failed: AttributeError: no 'METRICS_SELECTION_INFO'"
    began = event == AppEventType.ROUND_STARTED
    facts = {"reason": reason, "kind": "AttributeError", "began": began}
    assert run.lines()[2:] == [{"event": "failed", **facts}]


def test_a_run_has_its_code_and_its_seconds(run):
    started, _ = run.lines()
    assert (started["event"], started["version"]) == ("started", __version__)
    assert started["code"].endswith("surgical_aggregation")
    run.fire(AppEventType.INITIAL_MODEL_LOADED)  # a fresh run's: no line
    run.fire(AppEventType.ROUND_STARTED)
    line = run.fire(AppEventType.ROUND_DONE, **{headers.COLUMN_SIMILARITY: {"é": 0.5}})
    assert line["round"] == 2 and line["seconds"] >= 0 and line["column_similarity"] == {"é": 0.5}
    run.fire(EventType.END_RUN)
    assert [line["event"] for line in run.lines()] == ["started", "sites", "round", "ended"]
    assert '{"é": 0.5}' in run.path.read_text(encoding="utf-8")  # as people write it


def test_who_has_not_given_its_task_back_is_said_at_the_end(run):
    run.engine.sites = ["a", "b", "c"]
    run.fire(EventType.START_RUN)
    for site in "ab":
        run.fire(EventType.AFTER_TASK_DATA_FILTER, site, **{FLContextKey.TASK_NAME: "train"})
    run.fire(EventType.BEFORE_TASK_RESULT_FILTER, "a")
    assert run.fire(EventType.END_RUN)["owing"] == {"b": "train", "c": "start"}


def test_who_is_there_and_who_is_not_and_why_is_on_record_and_in_the_log(run, logged):
    run.engine.sites = ["south", "north"]
    deployed = {"app_server": ["server"], "app_client": ["north", "south"], "app_west": ["west"]}
    line = run.fire(EventType.START_RUN, **{FLContextKey.JOB_META: {"deploy_map": deployed}})
    job = ["north", "south", "west"]
    assert line == {"event": "sites", "job": job, "deployed": ["north", "south"]}
    why = "FLARE has not started the job there: it was not connected, or could not run it"
    for absent in ({"west": "late"}, {}):
        collected = {"accepted": ["north", "south"], "absent": absent}
        line = run.fire(AppEventType.ROUND_DONE, **{headers.COLLECTED: collected})
        assert line.items() >= collected.items()
    assert logged["warning"] == [
        f"the job has started at north, south; without west ({why})",
        "round 2: results of north, south; without west (late)",
    ]
    assert logged["info"][-1] == "round 2: results of north, south; without none"


def test_of_a_flood_of_refusals_ten_are_told_and_the_others_counted(run):
    run.refuse("north", 13)
    run.refuse("south", 10)
    assert [line["site"] for line in run.lines()[2:]] == ["north"] * 10 + ["south"] * 10
    run.fire(AppEventType.ROUND_DONE)
    (counted, _) = run.lines()[22:]
    of = {"site": "north", "task": "train", "round": 0}
    assert counted == {"event": "refused_too", **of, "count": 3}
    run.refuse("north", 1, round_=1)  # of the next round, one by one again
    run.refuse("south", 12, task="test", round_=None)
    run.fire(EventType.END_WORKFLOW)
    assert [line["event"] for line in run.lines()[24:]] == ["refused"] * 11 + ["refused_too"]
    assert run.lines()[-1]["count"] == 2


def test_any_admin_sees_the_progress_of_the_run_and_no_class(run):
    def statistics():
        collector = GroupInfoCollector()
        asked = {InfoCollector.CTX_KEY_STATS_COLLECTOR: collector}
        run.fire(InfoCollector.EVENT_TYPE_GET_STATS, **asked)
        return collector.info["RunRecord"]

    assert statistics() == {"rounds": 0, "best": None, "stopped": False}
    classes = {"classes": {"é": ["Edema"]}, "columns": ["Edema"]}
    run.fire(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, **{headers.BEST: BEST_MODEL | classes})
    run.fire(AppEventType.ROUND_DONE)
    best = {"round": 1, "metric": "bce", "value": 0.25}
    assert statistics() == {"rounds": 1, "best": best, "stopped": False}
    run.fire(headers.BEST_DROPPED, **{headers.DROPPED: {"reason": "other sites"}})
    run.fire(headers.TRAINING_STOPPED, **{headers.STOPPED: STOP})
    assert statistics() == {"rounds": 1, "best": None, "stopped": True}
