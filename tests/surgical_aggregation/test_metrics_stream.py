import pytest
from nvflare.apis.analytix import AnalyticsData
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.widgets.convert_to_fed_event import ConvertToFedEvent

from flare import Engine, context
from surgical_aggregation.global_model import MODEL_ROUND
from surgical_aggregation.metrics_stream import MetricsStream

VALUES = {"bce": 0.5, "bce/Nodule/Mass": 0.5, "auroc/Nodule/Mass": 0.75, "train_loss": 0.4}
UNTOLD = {"warmed_up": 1.0, "train_seconds": 2.0, "images": 9.0, "positives/Nodule/Mass": 3.0}


def trained(values=VALUES):
    meta = {MetaKey.INITIAL_METRICS: values}
    return DXO(DataKind.WEIGHTS, data={"conv/kernel": 0}, meta=meta).to_shareable()


def evaluated(values=VALUES):
    return DXO(DataKind.METRICS, data=values).to_shareable()


@pytest.fixture
def streamed(monkeypatch):
    """What leaves the site when a task with some headers has had a result: tag -> (value, step)."""

    def stream(name, headers, result, stream=None):
        sent = {}

        def send(self, event_type, event_data, fl_ctx):
            assert event_type == "fed.analytix_log_stats"
            data = AnalyticsData.from_dxo(from_shareable(event_data))
            assert not sent  # all in one message
            sent.update({tag: (value, data.step) for tag, value in data.value.items()})

        monkeypatch.setattr(ConvertToFedEvent, "fire_fed_event", send)
        component = stream or MetricsStream()
        engine = Engine(stream=component, event_to_fed=ConvertToFedEvent(["analytix_log_stats"]))
        fl_ctx = context(engine=engine)
        task = Shareable()
        for header, value in headers.items():
            task.set_header(header, value)
        engine.fire_event(EventType.ABOUT_TO_START_RUN, fl_ctx)
        for key, value in {
            FLContextKey.TASK_NAME: name,
            FLContextKey.TASK_DATA: task,
        }.items():
            fl_ctx.set_prop(key, value, private=True, sticky=False)
        engine.fire_event(EventType.BEFORE_TASK_EXECUTION, fl_ctx)
        fl_ctx.set_prop(FLContextKey.TASK_DATA, None, private=True, sticky=False)  # as FLARE does
        fl_ctx.set_prop(FLContextKey.TASK_RESULT, result, private=True, sticky=False)
        engine.fire_event(EventType.AFTER_TASK_RESULT_FILTER, fl_ctx)
        return sent

    return stream


def test_a_training_results_metrics_are_streamed_at_its_round(streamed):
    sent = streamed("train", {AppConstants.CURRENT_ROUND: 7}, trained())
    assert sent == {name: (value, 7) for name, value in VALUES.items()}


def test_the_first_round_is_a_step_too(streamed):
    sent = streamed("train", {AppConstants.CURRENT_ROUND: 0}, trained())
    assert {step for _, step in sent.values()} == {0}


def test_the_final_models_metrics_go_on_with_the_curves(streamed):
    assert streamed("validate", {MODEL_ROUND: 8}, evaluated({"bce": 0.25})) == {"bce": (0.25, 8)}


def test_a_tests_metrics_are_curves_of_their_own(streamed):
    sent = streamed("test", {MODEL_ROUND: 3}, evaluated({"bce/Edema": 0.25}))
    assert sent == {"test/bce/Edema": (0.25, 3)}


def test_neither_counts_nor_times_are_streamed(streamed):
    assert streamed("train", {AppConstants.CURRENT_ROUND: 0}, trained(UNTOLD)) == {}
    assert streamed("test", {MODEL_ROUND: 0}, evaluated(UNTOLD)) == {}


def test_a_result_that_a_filter_has_refused_tells_nothing(streamed):
    refused = make_reply(ReturnCode.TASK_RESULT_FILTER_ERROR)
    assert streamed("train", {AppConstants.CURRENT_ROUND: 0}, refused) == {}


@pytest.mark.parametrize(
    ("tracking", "tag"),
    [("tensorboard", "bce/Épaule (2+)"), ("mlflow", "bce/Épaule _2__")],
)
def test_a_name_is_as_the_tracker_takes_it(streamed, tracking, tag):
    result = trained({"bce/Épaule (2+)": 0.5})
    sent = streamed("train", {AppConstants.CURRENT_ROUND: 0}, result, MetricsStream(tracking))
    assert list(sent) == [tag]


def test_untracked_nothing_is_streamed(streamed):
    sent = streamed("train", {AppConstants.CURRENT_ROUND: 0}, trained(), MetricsStream("none"))
    assert sent == {}
