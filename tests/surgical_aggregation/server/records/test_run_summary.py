import pytest
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.server.records.run_summary import RunSummary
from surgical_aggregation.wire.headers import (
    BEST,
    BEST_DROPPED,
    CONTRIBUTION_REFUSED,
    REFUSAL,
    ROUND_DROPPED,
    SITE_SILENT,
    STOPPED,
    TRAINING_STOPPED,
)


@pytest.fixture
def said(logged):
    return logged["info"]


def trained():
    """The summary of a run that trains."""
    summary = RunSummary()
    summary.handle_event(AppEventType.ROUND_STARTED, context())
    return summary


def fire(summary, folder, event, site=None, **props):
    fl_ctx = context(site, engine=Engine(folder))
    for key, value in props.items():
        fl_ctx.set_prop(key, value, private=True, sticky=False)
    summary.handle_event(event, fl_ctx)


def outcome(metrics, workflow="test_best"):
    return {
        AppConstants.VALIDATION_RESULT: metrics,
        FLContextKey.WORKFLOW: workflow,
    }


def metrics(**values):
    return DXO(DataKind.METRICS, data=values).to_shareable()


def test_says_which_model_is_best_how_it_did_and_where_it_is(said, tmp_path):
    summary = trained()
    best = {"round": 4, "metric": "bce", "value": 0.25, "sites": {"north": 0.2, "south": 0.3}}
    fire(summary, tmp_path, AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, **{BEST: best})
    refused = {"site": "south", "reason": "it is late"}
    fire(summary, tmp_path, CONTRIBUTION_REFUSED, **{REFUSAL: refused})
    fire(summary, tmp_path, ROUND_DROPPED)
    result = metrics(**{"auroc": 0.75, "auroc/Edema": 0.75, "bce/Edema": 0.3, "bce/Mass": 0.4})
    event = AppEventType.VALIDATION_RESULT_RECEIVED
    fire(summary, tmp_path, event, "north", **outcome(result))
    fire(summary, tmp_path, event, "south", **outcome(metrics(**{"bce/Edema": 0.3, "images": 40})))
    for event_, site in ((SITE_SILENT, "west"), (CONTRIBUTION_REFUSED, "east")):
        why = {REFUSAL: {"site": site, "reason": f"why {site} is not"}}
        fire(summary, tmp_path, event_, **why, **{FLContextKey.WORKFLOW: "test_best"})
    fire(summary, tmp_path, event, "north", **outcome(metrics(auroc=0.1), "validate_final"))
    fire(summary, tmp_path, EventType.END_RUN)
    assert said[0].splitlines() == [
        "the run has ended",
        "  best model: round 4, mean validation bce 0.2500 over 2 sites",
        "  test split of east: not measured: why east is not",
        "  test split of north: mean AUROC 0.750 over 1 of its 2 classes",
        "  test split of south: mean AUROC not defined over 0 of its 1 classes, 40 images",
        "  test split of west: not measured: why west is not",
        "  results refused: 2; see run_record.jsonl",
        "  rounds dropped: 1; see run_record.jsonl",
        f"  models: {tmp_path / 'server' / 'checkpoints' / 'job'}",
    ]


def test_says_so_when_there_is_no_best_model(said, tmp_path):
    fire(trained(), tmp_path, EventType.END_RUN)
    assert "no best model" in said[0]


def test_says_that_it_stopped_early(said, tmp_path):
    summary = trained()
    stopped = {"round": 7, "best_round": 5, "patience": 2}
    fire(summary, tmp_path, TRAINING_STOPPED, **{STOPPED: stopped})
    fire(summary, tmp_path, EventType.END_RUN)
    assert said[0].splitlines()[1] == "  stopped early, after round 7: patience 2"


@pytest.mark.parametrize(
    ("dropped", "line"), [(False, "best model: round 4"), (True, "no best model")]
)
def test_the_earlier_runs_best_model_counts_unless_it_is_dropped(said, tmp_path, dropped, line):
    summary = trained()
    best = {"round": 4, "metric": "bce", "value": 0.25, "sites": {"north": 0.2, "south": 0.3}}
    fire(summary, tmp_path, AppEventType.INITIAL_MODEL_LOADED, **{BEST: best})
    if dropped:
        fire(summary, tmp_path, BEST_DROPPED)
    fire(summary, tmp_path, EventType.END_RUN)
    assert line in said[0]


def test_of_a_run_that_trains_nothing_it_says_how_the_model_did_and_nothing_else(said, tmp_path):
    summary = RunSummary("evaluation")
    event = AppEventType.VALIDATION_RESULT_RECEIVED
    result = metrics(**{"auroc": 0.75, "auroc/Edema": 0.75, "bce/Edema": 0.3})
    fire(summary, tmp_path, event, "north", **outcome(result, "evaluation"))
    fire(summary, tmp_path, EventType.END_RUN)
    assert said[0].splitlines() == [
        "the run has ended",
        "  test split of north: mean AUROC 0.750 over 1 of its 1 classes",
    ]
