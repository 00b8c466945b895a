import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.server.records.run_summary import RunSummary
from surgical_aggregation.wire import headers

BEST = {"round": 4, "metric": "bce", "value": 0.25, "sites": {"north": 0.2, "south": 0.3}}


@pytest.fixture
def tell(logged, tmp_path):
    """Fires a run's events at the summary; returns the lines that it logs at the end."""

    def tell(*happened, workflow="test_best"):
        summary = RunSummary(workflow)
        engine = Engine(tmp_path, record=RunRecord(), summary=summary)
        begin = (EventType.START_RUN, None, {})
        for event, site, props in (begin, *happened, (EventType.END_RUN, None, {})):
            props = {FLContextKey.WORKFLOW: workflow, **props}
            engine.fire_event(event, context(site, engine=engine, props=props))
        first, *lines = logged["info"][-1].splitlines()
        assert first == "the run has ended"
        return lines

    return tell


STARTED = (AppEventType.ROUND_DONE, None, {})


def measured(site, values, workflow="test_best"):
    result = SiteResult({}, {}, metrics=values)
    props = {headers.RESULT: result, FLContextKey.WORKFLOW: workflow}
    return AppEventType.VALIDATION_RESULT_RECEIVED, site, props


def left_out(event, site, workflow="test_best"):
    reason = f"why {site} is not"
    refusal = {"site": site, "task": "test", "round": None, "reason": reason}
    return event, None, {headers.REFUSAL: refusal, FLContextKey.WORKFLOW: workflow}


def test_logs_the_best_model_its_test_results_and_where_it_is(tell, tmp_path):
    figures = {"auroc": 0.75, "auroc/Edema": 0.75, "bce/Edema": 0.3, "bce/Mass": 0.4}
    assert tell(
        STARTED,
        (AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, None, {headers.BEST: BEST}),
        left_out(headers.CONTRIBUTION_REFUSED, "far", "train"),
        (headers.ROUND_DROPPED, None, {headers.DROP: {}}),
        measured("north", figures),
        measured("south", {"bce/Edema": 0.3, "images": 40}),
        left_out(headers.SITE_SILENT, "west"),
        left_out(headers.CONTRIBUTION_REFUSED, "east"),
        measured("north", {"auroc": 0.1}, "validate_final"),
    ) == [
        "  best model: round 4, mean validation bce 0.2500 over 2 sites",
        "  test split of east: not measured: why east is not",
        "  test split of north: mean AUROC 0.750 over 1 of its 2 classes",
        "  test split of south: mean AUROC not defined over 0 of its 1 classes, 40 images",
        "  test split of west: not measured: why west is not",
        "  results refused: 2; see run_record.jsonl",
        "  rounds dropped: 1; see run_record.jsonl",
        f"  models: {tmp_path / 'server' / 'checkpoints' / 'job'}",
    ]


def test_logs_how_the_best_model_was_made_an_early_stop_and_that_there_is_none(tell):
    refitted = {headers.BEST: {**BEST, headers.CANDIDATE: headers.REFIT}}
    earlier = (AppEventType.INITIAL_MODEL_LOADED, None, refitted)
    assert tell(STARTED, earlier)[0].startswith("  best model: round 4 (refit), mean validation")
    gone = {headers.DROPPED: {"reason": "other sites"}}
    dropped, stop = (headers.BEST_DROPPED, None, gone), {"round": 7, "best_round": 5, "patience": 2}
    stopped = (headers.TRAINING_STOPPED, None, {headers.STOPPED: stop})
    early, none, _ = tell(STARTED, earlier, dropped, stopped)
    assert early == "  stopped early, after round 7: patience 2" and "no best model" in none


def test_without_training_it_logs_the_test_results_alone(tell):
    result = measured("north", {"auroc": 0.75, "auroc/Edema": 0.75, "bce/Edema": 0.3}, "evaluation")
    lines = tell(result, workflow="evaluation")
    assert lines == ["  test split of north: mean AUROC 0.750 over 1 of its 1 classes"]


def test_a_reason_with_a_line_break_of_unicode_hides_no_line(tell):
    reason = {FLContextKey.EVENT_DATA: "no disk\u2028\x85 today"}
    (none, models) = tell(STARTED, (EventType.FATAL_SYSTEM_ERROR, None, reason))
    assert none.startswith("  there is no best model") and models.startswith("  models: ")
