import subprocess
import sys
from pathlib import Path

import pytest
from nvflare.apis.analytix import AnalyticsDataType
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import EventScope, FLContextKey, ProcessType, ReservedKey
from nvflare.apis.utils.analytix_utils import create_analytic_dxo
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from flare import Engine, context
from surgical_aggregation import trackers
from surgical_aggregation.trackers import TrackingError, check_installed
from surgical_aggregation.tracking import Tracking


def sent(engine, site, tag, value, step):
    """The server's context when a site's figure has come in."""
    dxo = create_analytic_dxo("train", {tag: value}, AnalyticsDataType.SCALARS, global_step=step)
    shareable = dxo.to_shareable()
    shareable.set_peer_props({ReservedKey.IDENTITY_NAME: site})
    fl_ctx = context(engine=engine)
    fl_ctx.set_prop(FLContextKey.EVENT_DATA, shareable, private=True, sticky=False)
    fl_ctx.set_prop(FLContextKey.EVENT_SCOPE, EventScope.FEDERATION, private=True, sticky=False)
    return fl_ctx


def track(component, folder):
    """Let a run have one figure of each of two sites."""
    engine = Engine(folder)
    engine.sites = ["north", "south"]
    fl_ctx = context(engine=engine)
    fl_ctx.set_prop(FLContextKey.PROCESS_TYPE, ProcessType.SERVER_JOB)
    component.handle_event(EventType.START_RUN, fl_ctx)
    for number, site in enumerate(("north", "south")):
        event = "fed.analytix_log_stats"
        component.handle_event(event, sent(engine, site, "bce/Edema", 0.5 + number, 4))
    component.handle_event(EventType.END_RUN, context(engine=engine))
    return folder / "server/job"


class TestTensorboard:
    def test_every_site_has_event_files_of_its_own(self, tmp_path):
        folder = track(Tracking(), tmp_path) / "tb_events"
        for site, value in {"north": 0.5, "south": 1.5}.items():
            events = EventAccumulator(str(folder / site)).Reload().Scalars("bce/Edema")
            assert [(event.step, event.value) for event in events] == [(4, value)]

    def test_they_are_written_without_tensorflow(self, tmp_path):
        """TensorBoard's writer imports it where it is installed: 5 seconds and 600 MB."""
        code = (
            f"import sys; sys.path[:0] = {[*sys.path, str(Path(__file__).parent)]}\n"
            "from pathlib import Path; import test_tracking as t\n"
            "t.track(t.Tracking(), Path(sys.argv[1]))\n"
            "sys.exit('tensorflow' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", code, tmp_path]).returncode == 0
        assert list((tmp_path / "server/job/tb_events/north").iterdir())


@pytest.mark.filterwarnings("ignore")  # its own packages' deprecations
class TestMlflow:
    def test_every_site_has_a_run_of_its_own(self, tmp_path, monkeypatch, panics):
        mlflow = pytest.importorskip("mlflow")
        uri = f"sqlite:///{tmp_path}/mlflow.db"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        track(Tracking("mlflow"), tmp_path)
        client = mlflow.MlflowClient(uri)
        experiment = client.get_experiment_by_name("surgical-aggregation")
        runs = client.search_runs([experiment.experiment_id])
        figures = {
            run.info.run_name.partition("-")[0]: [
                (metric.step, metric.value)
                for metric in client.get_metric_history(run.info.run_id, "bce/Edema")
            ]
            for run in runs
        }
        assert figures == {"north": [(4, 0.5)], "south": [(4, 1.5)]}
        assert not panics


class TestNone:
    def test_nothing_is_kept(self, tmp_path, panics):
        assert not track(Tracking("none"), tmp_path).exists()
        assert panics == []


class TestRefusals:
    def test_a_package_that_is_not_there_ends_the_run_and_says_what_to_do(
        self, tmp_path, panics, monkeypatch
    ):
        monkeypatch.setattr(trackers, "find_spec", lambda package: None)
        track(Tracking("mlflow"), tmp_path)
        assert "'mlflow' needs the package mlflow at the server, which is not there" in panics[0]
        assert "pip install mlflow" in panics[0]

    def test_a_receiver_that_cannot_start_ends_the_run(self, tmp_path, panics):
        (tmp_path / "server").write_text("in the way of its folder")
        track(Tracking(), tmp_path)
        assert "tracking = 'tensorboard' cannot start; the server's log says why" in panics[0]

    def test_an_unknown_tracker_ends_the_run(self, tmp_path, panics):
        track(Tracking("wandb"), tmp_path)
        assert panics == ["tracking must be one of tensorboard, mlflow, none; got 'wandb'."]

    def test_none_needs_nothing(self, monkeypatch):
        monkeypatch.setattr(trackers, "find_spec", lambda package: None)
        check_installed("none")
        with pytest.raises(TrackingError, match="pip install tensorboard"):
            check_installed("tensorboard")
