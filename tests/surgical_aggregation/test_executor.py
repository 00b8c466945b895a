"""The executor on a real Keras model, with FLARE's own containers around it."""

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from flare import Engine
from surgical_aggregation import tensorflow_runtime, wire
from surgical_aggregation.checkpoint import digest
from surgical_aggregation.executor import CANNOT_TAKE_PART, KerasExecutor
from surgical_aggregation.global_model import INITIAL_BODY
from surgical_aggregation.site import SiteError
from tiny_site import FEATURES, TinySite, tiny_model

pytestmark = pytest.mark.keras


@pytest.fixture(scope="module")
def body():
    variables = {v.path: v.numpy() for v in tiny_model(1).variables}
    return {name: v for name, v in variables.items() if not name.startswith("head/")}


@pytest.fixture
def site(tmp_path):
    table = tmp_path / "sites.json"
    table.write_text('{"north": {"classes": ["Edema", "Nodule/Mass"], "images": 20}}')
    return TinySite("north", str(table))


@pytest.fixture
def start(site, monkeypatch):
    """Start an executor; TensorFlow has begun in this process, so its set-up is left out."""
    monkeypatch.setattr(tensorflow_runtime, "configure", lambda threads, seed: None)

    def make(**args):
        fl_ctx = FLContext()
        fl_ctx.set_prop(ReservedKey.ENGINE, Engine(site=site), private=True, sticky=False)
        executor = KerasExecutor(warmup_epochs=1, **args)
        executor.handle_event(EventType.START_RUN, fl_ctx)
        return executor, fl_ctx

    return make


def task(body, columns=None, header=None):
    shareable = DXO(DataKind.WEIGHTS, data=wire.join(body, columns or {})).to_shareable()
    shareable.set_header(AppConstants.CURRENT_ROUND, 3)
    if header:
        shareable.set_header(INITIAL_BODY, header)
    return shareable


def column(value):
    return (np.full(FEATURES, value, np.float32), np.float32([value]))


COLUMNS = {"Nodule/Mass": column(2), "Edema": column(1)}


def carried_out(start, name, shareable, signal=None, **args):
    executor, fl_ctx = start(**args)
    return executor.execute(name, shareable, fl_ctx, signal or Signal())


class TestTrain:
    def test_gives_all_variables_with_a_dense_head(self, start, body):
        dxo = from_shareable(carried_out(start, "train", task(body, COLUMNS)))
        assert set(dxo.data) == {*body, "head/kernel", "head/bias"}
        assert dxo.data["head/kernel"].shape == (FEATURES, 2)

    def test_metrics_are_those_of_the_received_model_before_training(self, start, body):
        validated = from_shareable(carried_out(start, "validate", task(body, COLUMNS))).data
        dxo = from_shareable(
            carried_out(start, "train", task(body, COLUMNS), learning_rate=0.5, epochs=2)
        )
        measured = dxo.get_meta_prop(MetaKey.INITIAL_METRICS)
        for name, value in validated.items():
            assert measured[name] == pytest.approx(value)
        assert {"bce/Edema", "bce/Nodule/Mass"} <= set(measured)

    def test_says_how_many_images_it_trained_on_and_no_label_counts(self, start, body):
        dxo = from_shareable(carried_out(start, "train", task(body, COLUMNS), epochs=3))
        assert dxo.get_meta_prop(MetaKey.NUM_STEPS_CURRENT_ROUND) == 60
        assert dxo.get_meta_prop(wire.POSITIVES) is None

    def test_reports_positives_only_when_told_to(self, start, site, body):
        dxo = from_shareable(
            carried_out(start, "train", task(body, COLUMNS), report_positives=True)
        )
        labels = np.concatenate([y for _, y in site.data("train").as_numpy_iterator()])
        counts = labels.sum(axis=0).astype(int).tolist()
        assert dxo.get_meta_prop(wire.POSITIVES) == dict(
            zip(["Edema", "Nodule/Mass"], counts, strict=True)
        )

    def test_columns_that_the_server_lacks_are_warmed_up(self, start, body):
        sent = {"Edema": column(1)}
        dxo = from_shareable(carried_out(start, "train", task(body, sent), learning_rate=0.0))
        np.testing.assert_array_equal(dxo.data["head/kernel"][:, 0], 1)
        assert not np.array_equal(dxo.data["head/kernel"][:, 1], np.zeros(FEATURES))

    def test_an_abort_ends_it_without_a_result(self, start, body):
        signal = Signal()
        signal.trigger(True)
        reply = carried_out(start, "train", task(body, COLUMNS), signal)
        assert reply.get_return_code() == ReturnCode.TASK_ABORTED


class TestEvaluation:
    @pytest.mark.parametrize("name", ["validate", "test"])
    def test_gives_metrics_and_nothing_else(self, start, body, name):
        dxo = from_shareable(carried_out(start, name, task(body, COLUMNS)))
        assert dxo.data_kind == DataKind.METRICS
        assert all(isinstance(value, float) for value in dxo.data.values())
        assert "bce" in dxo.data

    def test_a_class_that_the_server_has_no_column_for_is_left_out(self, start, body):
        dxo = from_shareable(carried_out(start, "test", task(body, {"Edema": column(1)})))
        assert "bce/Edema" in dxo.data
        assert "bce/Nodule/Mass" not in dxo.data

    def test_splits_differ(self, start, body):
        validated = carried_out(start, "validate", task(body, COLUMNS))
        tested = carried_out(start, "test", task(body, COLUMNS))
        assert from_shareable(validated).data != from_shareable(tested).data


class TestInitialBody:
    def test_the_announced_one_is_accepted(self, start, body):
        reply = carried_out(start, "train", task(body, COLUMNS, digest(body)))
        assert reply.get_return_code() == ReturnCode.OK

    def test_another_one_is_refused(self, start, body):
        other = {**body, "bn/beta": body["bn/beta"] + 1}
        with pytest.raises(SiteError, match="Does a filter between server and site change it"):
            carried_out(start, "train", task(other, COLUMNS, digest(body)))


class TestStart:
    @pytest.mark.parametrize("part", ["model", "data"])
    def test_a_site_that_cannot_start_says_why_and_answers_with_an_error(
        self, start, site, body, monkeypatch, caplog, part
    ):
        def broken(*args, **options):
            raise SiteError("the images of north are missing.")

        monkeypatch.setattr(site, part, broken)
        reply = carried_out(start, "train", task(body, COLUMNS))
        assert f"{CANNOT_TAKE_PART}the images of north are missing" in caplog.text
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
        assert "images" not in str(reply)  # the reason may hold a path and stays at the site


class TestThreads:
    def fl_ctx(self, job, **deploy_map):
        fl_ctx = FLContext()
        fl_ctx.set_prop(ReservedKey.RUN_NUM, job, private=False, sticky=False)
        meta = {"deploy_map": deploy_map}
        fl_ctx.set_prop(ReservedKey.JOB_META, meta, private=True, sticky=False)
        return fl_ctx

    def test_simulated_sites_share_the_cores(self, monkeypatch):
        monkeypatch.setattr(tensorflow_runtime, "cores", lambda: 8)
        fl_ctx = self.fl_ctx("simulate_job", app_server=["server"], app_client=["a", "b", "c"])
        assert tensorflow_runtime.threads_per_site(fl_ctx) == 2

    def test_a_site_has_at_least_one(self, monkeypatch):
        monkeypatch.setattr(tensorflow_runtime, "cores", lambda: 2)
        fl_ctx = self.fl_ctx("simulate_job", app=[f"site-{i}" for i in range(10)])
        assert tensorflow_runtime.threads_per_site(fl_ctx) == 1

    def test_a_real_site_has_its_machine_to_itself(self, monkeypatch):
        monkeypatch.setattr(tensorflow_runtime, "cores", lambda: 8)
        fl_ctx = self.fl_ctx("5f0c", app_server=["server"], app_client=["a", "b", "c"])
        assert tensorflow_runtime.threads_per_site(fl_ctx) == 8
