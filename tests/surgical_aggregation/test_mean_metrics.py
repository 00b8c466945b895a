import pytest
from nvflare.apis.analytix import AnalyticsData
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.shareable import make_reply
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.global_model import GlobalModel
from surgical_aggregation.mean_metrics import MeanMetrics

NORTH = {"bce": 0.5, "bce/Edema": 0.5, "bce/Mass": 0.25, "images": 9.0}
SOUTH = {"bce": 0.25, "bce/Edema": 1.0, "auroc": "high", "train_loss": float("nan")}


class Kept(FLComponent):
    """Keeps what is logged at the server: (step, means)."""

    def __init__(self):
        super().__init__()
        self.means = []

    def handle_event(self, event_type, fl_ctx):
        if event_type == "analytix_log_stats":
            data = AnalyticsData.from_dxo(from_shareable(fl_ctx.get_prop(FLContextKey.EVENT_DATA)))
            self.means.append((data.step, data.value))


@pytest.fixture
def server():
    """A server with the component; fires events."""
    return Server()


class Server:
    def __init__(self):
        self.kept = Kept()
        self.engine = Engine(means=MeanMetrics(), kept=self.kept)
        self.fire(EventType.START_RUN)

    def fire(self, event, site=None, round_=0, made=None, **props):
        model = None if made is None else GlobalModel({}, {}, {"round": made})
        fl_ctx = context(site, current_round=round_, model=model, engine=self.engine)
        for key, value in props.items():
            fl_ctx.set_prop(key, value, private=True, sticky=False)
        self.engine.fire_event(event, fl_ctx)

    def trained(self, site, metrics, accepted=True):
        meta = {MetaKey.INITIAL_METRICS: metrics}
        result = DXO(DataKind.WEIGHTS, data={"conv/kernel": 0}, meta=meta).to_shareable()
        props = {AppConstants.TRAINING_RESULT: result, AppConstants.AGGREGATION_ACCEPTED: accepted}
        self.fire(AppEventType.AFTER_CONTRIBUTION_ACCEPT, site, **props)

    def evaluated(self, site, result, workflow="validate_final"):
        props = {AppConstants.VALIDATION_RESULT: result, FLContextKey.WORKFLOW: workflow}
        self.fire(AppEventType.VALIDATION_RESULT_RECEIVED, site, **props)


def test_a_rounds_means_are_over_the_sites_that_measured(server):
    server.trained("north", NORTH)
    server.trained("south", SOUTH)
    server.fire(AppEventType.BEFORE_AGGREGATION, round_=7)
    assert server.kept.means == [(7, {"bce": 0.375, "bce/Edema": 0.75, "bce/Mass": 0.25})]


def test_a_refused_result_does_not_count(server):
    server.trained("north", NORTH)
    server.trained("south", SOUTH, accepted=False)
    server.fire(AppEventType.BEFORE_AGGREGATION)
    assert server.kept.means[0][1]["bce"] == 0.5


def test_a_round_forgets_the_one_before(server):
    server.trained("north", NORTH)
    server.fire(AppEventType.BEFORE_AGGREGATION)
    server.fire(AppEventType.ROUND_STARTED)
    server.trained("south", {"bce": 0.25})
    server.fire(AppEventType.BEFORE_AGGREGATION, round_=1)
    assert server.kept.means[1] == (1, {"bce": 0.25})


def test_the_final_model_goes_on_with_the_curves(server):
    server.trained("north", NORTH)
    server.fire(EventType.START_WORKFLOW)
    server.evaluated("south", DXO(DataKind.METRICS, data={"bce": 0.125}).to_shareable())
    server.evaluated("north", make_reply(ReturnCode.EXECUTION_EXCEPTION))
    props = {FLContextKey.WORKFLOW: "validate_final"}
    server.fire(EventType.END_WORKFLOW, round_=None, made=8, **props)
    assert server.kept.means == [(8, {"bce": 0.125})]


def test_the_test_of_the_best_model_is_no_point_of_a_curve(server):
    result = DXO(DataKind.METRICS, data={"bce": 0.125}).to_shareable()
    server.evaluated("south", result, "test_best")
    server.fire(EventType.END_WORKFLOW, **{FLContextKey.WORKFLOW: "test_best"})
    assert server.kept.means == []
