import pytest
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.server.records.run_summary import RunSummary
from surgical_aggregation.wire import headers

BEST_MODEL = {"round": 4, "metric": "bce", "value": 0.25, "sites": {"north": 0.2, "south": 0.3}}


@pytest.fixture
def run(logged, tmp_path):
    """Tells a summary what happens in a run; `end` gives the lines that it logs."""

    class Run:
        def __init__(self, summary=None):
            self.summary = summary or RunSummary()
            if summary is None:
                self.fire(AppEventType.ROUND_STARTED)

        def fire(self, event, site=None, **props):
            fl_ctx = context(site, engine=Engine(tmp_path))
            for key, value in props.items():
                fl_ctx.set_prop(key, value, private=True, sticky=False)
            self.summary.handle_event(event, fl_ctx)

        def measured(self, site, workflow="test_best", **values):
            result = DXO(DataKind.METRICS, data=values).to_shareable()
            props = {AppConstants.VALIDATION_RESULT: result, FLContextKey.WORKFLOW: workflow}
            self.fire(AppEventType.VALIDATION_RESULT_RECEIVED, site, **props)

        def end(self):
            self.fire(EventType.END_RUN)
            first, *lines = logged["info"][0].splitlines()
            assert first == "the run has ended"
            return lines

    return Run


def test_says_which_model_is_best_how_it_did_and_where_it_is(run, tmp_path):
    run = run()
    run.fire(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, **{headers.BEST: BEST_MODEL})
    run.fire(
        headers.CONTRIBUTION_REFUSED, **{headers.REFUSAL: {"site": "south", "reason": "it is late"}}
    )
    run.fire(headers.ROUND_DROPPED)
    defined = {"auroc": 0.75, "auroc/Edema": 0.75}
    run.measured("north", **defined, **{"bce/Edema": 0.3, "bce/Mass": 0.4})
    run.measured("south", **{"bce/Edema": 0.3, "images": 40})
    for event, site in ((headers.SITE_SILENT, "west"), (headers.CONTRIBUTION_REFUSED, "east")):
        why = {headers.REFUSAL: {"site": site, "reason": f"why {site} is not"}}
        run.fire(event, **why, **{FLContextKey.WORKFLOW: "test_best"})
    run.measured("north", "validate_final", auroc=0.1)
    assert run.end() == [
        "  best model: round 4, mean validation bce 0.2500 over 2 sites",
        "  test split of east: not measured: why east is not",
        "  test split of north: mean AUROC 0.750 over 1 of its 2 classes",
        "  test split of south: mean AUROC not defined over 0 of its 1 classes, 40 images",
        "  test split of west: not measured: why west is not",
        "  results refused: 2; see run_record.jsonl",
        "  rounds dropped: 1; see run_record.jsonl",
        f"  models: {tmp_path / 'server' / 'checkpoints' / 'job'}",
    ]


def test_says_that_it_stopped_early_and_that_there_is_no_best_model(run):
    run = run()
    stop = {"round": 7, "best_round": 5, "patience": 2}
    run.fire(headers.TRAINING_STOPPED, **{headers.STOPPED: stop})
    stopped, none, _ = run.end()
    assert stopped == "  stopped early, after round 7: patience 2"
    assert "no best model" in none


@pytest.mark.parametrize(
    ("dropped", "line"), [(False, "best model: round 4"), (True, "no best model")]
)
def test_the_earlier_runs_best_model_counts_unless_it_is_dropped(run, dropped, line):
    run = run()
    run.fire(AppEventType.INITIAL_MODEL_LOADED, **{headers.BEST: BEST_MODEL})
    if dropped:
        run.fire(headers.BEST_DROPPED)
    assert line in run.end()[0]


def test_of_a_run_that_trains_nothing_it_says_how_the_model_did_and_nothing_else(run):
    run = run(RunSummary("evaluation"))
    run.measured("north", "evaluation", **{"auroc": 0.75, "auroc/Edema": 0.75, "bce/Edema": 0.3})
    assert run.end() == ["  test split of north: mean AUROC 0.750 over 1 of its 1 classes"]
