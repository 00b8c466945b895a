import sys
from unittest.mock import Mock

import pytest
from nvflare.apis.analytix import AnalyticsDataType
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import EventScope, FLContextKey, ProcessType, ReservedKey
from nvflare.apis.utils.analytix_utils import create_analytic_dxo
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from flare import Engine, context
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.server.records import tracking
from surgical_aggregation.server.records.tracking import Tracking
from surgical_aggregation.wire.headers import CANDIDATE, MEASURED, REFIT, RESULT

NORTH = {"bce": 0.5, "bce/Edema": 0.5, "bce/Mass": 0.25, "images": 9.0, "train_seconds": 2.0}
SOUTH = {"bce": 0.25, "bce/Edema": 1.0}


class Server:
    """A server with the component, for which tests set the sites' metrics."""

    def __init__(self, component, folder):
        self.component, self.engine = component, Engine(folder)
        self.engine.sites = ["north", "south"]
        self.fire(EventType.START_RUN, **{FLContextKey.PROCESS_TYPE: ProcessType.SERVER_JOB})

    def fire(self, event, site=None, claims=None, **props):
        fl_ctx = context(site, current_round=4, engine=self.engine, claims=claims, props=props)
        fl_ctx.put(ReservedKey.IDENTITY_NAME, "server", private=False, sticky=False)
        self.component.handle_event(event, fl_ctx)

    def trained(self, site, metrics, accepted=True, claims=None):
        result = SiteResult({}, {}, metrics=metrics)
        props = {RESULT: result, AppConstants.AGGREGATION_ACCEPTED: accepted}
        self.fire(AppEventType.AFTER_CONTRIBUTION_ACCEPT, site, claims=claims, **props)

    def evaluated(self, site, metrics, task="validate", round_=8, **props):
        props |= {RESULT: SiteResult({}, {}, metrics=metrics), FLContextKey.TASK_NAME: task}
        event = AppEventType.VALIDATION_RESULT_RECEIVED
        self.fire(event, site, **props, **{MEASURED: {"round": round_}})


def track(server):
    """One round with results of two sites."""
    for site, metrics in {"north": NORTH, "south": SOUTH}.items():
        server.trained(site, metrics)
    server.fire(AppEventType.BEFORE_AGGREGATION)
    return server


def curves(folder, whose):
    """Tag -> (step, value) of all points."""
    events = EventAccumulator(str(folder / "server/job/tb_events" / whose)).Reload()
    tags = events.Tags()["scalars"]
    return {tag: [(point.step, point.value) for point in events.Scalars(tag)] for tag in tags}


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "tensorboard.compat.notf", raising=False)
    return Server(Tracking(), tmp_path)


def test_curves_are_the_sites_metrics_and_their_means_neither_counts_nor_times(server, tmp_path):
    track(server)
    server.fire(EventType.START_WORKFLOW)  # the final model's, and then a test
    server.evaluated("south", {"bce": 0.125})
    final = {FLContextKey.WORKFLOW: "validate_final", MEASURED: {"round": 8}}
    server.fire(EventType.END_WORKFLOW, **final)
    server.evaluated("south", {"bce/Edema": 0.125}, task="test", round_=3)
    server.fire(EventType.END_WORKFLOW, **{FLContextKey.WORKFLOW: "test_best"})
    server.fire(EventType.END_RUN)
    north = {"bce": [(4, 0.5)], "bce/Edema": [(4, 0.5)], "bce/Mass": [(4, 0.25)]}
    assert curves(tmp_path, "north") == north
    south = {"bce": [(4, 0.25), (8, 0.125)], "bce/Edema": [(4, 1.0)]}
    assert curves(tmp_path, "south") == south | {"test/bce/Edema": [(3, 0.125)]}
    means = {"bce": [(4, 0.375), (8, 0.125)], "bce/Edema": [(4, 0.75)], "bce/Mass": [(4, 0.25)]}
    assert curves(tmp_path, "server") == means
    assert len(list((tmp_path / "server/job/tb_events/north").iterdir())) == 1
    assert "tensorboard.compat.notf" in sys.modules  # or it would import TensorFlow


def test_a_candidates_curves_are_apart_from_those_of_the_rounds_models(server, tmp_path):
    candidate = GlobalModel({}, {"round": 8, CANDIDATE: REFIT}).to_learnable()
    model = {AppConstants.GLOBAL_MODEL: candidate}
    server.evaluated("north", {"bce": 0.125}, **model)
    server.evaluated("north", {"bce": 0.25}, "test", **model)  # it may be the best one
    server.fire(EventType.END_RUN)
    assert curves(tmp_path, "north") == {"refit/bce": [(8, 0.125)], "test/bce": [(8, 0.25)]}


def test_only_accepted_results_of_the_round_count_under_the_sites_own_name(server, tmp_path):
    server.trained("west", {"bce": 9.0})
    server.fire(AppEventType.ROUND_STARTED)
    server.trained("north", {"bce": 0.5}, claims="south")
    server.trained("south", SOUTH, accepted=False)
    server.fire(AppEventType.BEFORE_AGGREGATION)
    dxo = create_analytic_dxo("x", {"bce": 0.5}, AnalyticsDataType.SCALARS, global_step=1)
    shareable = dxo.to_shareable()  # what FLARE streams
    shareable.set_peer_props({ReservedKey.IDENTITY_NAME: "south"})
    scope = {FLContextKey.EVENT_SCOPE: EventScope.FEDERATION}
    server.fire("fed.analytix_log_stats", **scope, **{FLContextKey.EVENT_DATA: shareable})
    server.fire(EventType.END_RUN)
    assert curves(tmp_path, "north") == curves(tmp_path, "server") == {"bce": [(4, 0.5)]}
    assert not (tmp_path / "server/job/tb_events/south").exists()


def test_what_cannot_be_kept_does_not_stop_the_run(server, monkeypatch, caplog):
    full = Mock(side_effect=OSError("the disk is full"))
    monkeypatch.setattr(server.component._receiver, "save", full)
    server.trained("north", NORTH)
    assert "the metrics of north are not written: the disk is full" in caplog.text


def test_a_name_is_as_mlflow_takes_it():
    assert Tracking("mlflow")._tag("bce/Épaule (2+)") == "bce/Épaule _2__"
    assert Tracking()._tag("bce/Épaule (2+)") == "bce/Épaule (2+)"


@pytest.mark.filterwarnings("ignore")  # its own packages' deprecations
def test_in_mlflow_every_site_has_a_run_of_its_own(tmp_path, monkeypatch, panics):
    mlflow = pytest.importorskip("mlflow")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    track(Server(Tracking("mlflow"), tmp_path)).fire(EventType.END_RUN)
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("surgical-aggregation")
    figures = {}
    for run in client.search_runs([experiment.experiment_id]):
        history = client.get_metric_history(run.info.run_id, "bce/Edema")
        points = [(metric.step, metric.value) for metric in history]
        figures[run.info.run_name.partition("-")[0]] = points
    assert figures == {"north": [(4, 0.5)], "south": [(4, 1.0)]}
    assert not panics


@pytest.mark.parametrize(("tracker", "reason"), [
    ("mlflow", "mlflow halted; None in sys.modules. Fix this (pip install mlflow), or set"),
    ("wandb", "tracking must be one of tensorboard, mlflow, none; got 'wandb'."),
    ("tensorboard", "tracking = 'tensorboard' cannot start at the server: "),
    ("none", None),
])  # fmt: skip
def test_a_tracker_that_cannot_start_ends_the_run(tmp_path, panics, monkeypatch, tracker, reason):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    (tmp_path / "server").write_text("in the way of its folder")
    track(Server(Tracking(tracker), tmp_path))
    assert panics == [] if reason is None else reason in panics[0]


def test_without_tensorboard_the_run_keeps_no_curves(tmp_path, panics, monkeypatch, caplog):
    monkeypatch.setattr(tracking, "find_spec", lambda _: None)
    track(Server(Tracking(), tmp_path))
    assert panics == [] and list(tmp_path.iterdir()) == []
    assert "no curves are written: tensorboard is not installed" in caplog.text
