"""The executor on a real Keras model, with FLARE's own containers around it."""

from contextlib import suppress
from pathlib import Path

import keras
import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from flare import Engine
from surgical_aggregation import tensorflow_runtime, wire
from surgical_aggregation.checkpoint import digest, load
from surgical_aggregation.declaration import DeclareClasses
from surgical_aggregation.executor import CANNOT_TAKE_PART, KerasExecutor
from surgical_aggregation.global_model import BEST_ROUND, CONTINUES, INITIAL_BODY
from surgical_aggregation.site import SiteError
from surgical_aggregation.site_state import PREVIOUS_FILE, load_state, site_folder
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
def start(site, monkeypatch, tmp_path):
    """Start an executor; TensorFlow has begun in this process, so its set-up is left out."""
    monkeypatch.setattr(tensorflow_runtime, "configure", lambda *args: False)

    def make(policy=None, **args):
        fl_ctx = FLContext()
        engine = Engine(tmp_path, site=site)
        fl_ctx.set_prop(FLContextKey.SCOPE_PROPERTIES, policy, private=True, sticky=True)
        fl_ctx.set_prop(ReservedKey.ENGINE, engine, private=True, sticky=False)
        fl_ctx.set_prop(ReservedKey.RUN_NUM, "job", private=False, sticky=False)
        fl_ctx.set_prop(ReservedKey.IDENTITY_NAME, "north", private=False, sticky=False)
        keras.utils.set_random_seed(0)
        executor = KerasExecutor(warmup_epochs=1, **args)
        for event in (EventType.ABOUT_TO_START_RUN, EventType.START_RUN):
            executor.handle_event(event, fl_ctx)
        return executor, fl_ctx

    return make


def task(body, columns=None, header=None, round_=3, best=None, continues=None):
    shareable = DXO(DataKind.WEIGHTS, data=wire.join(body, columns or {})).to_shareable()
    headers = {INITIAL_BODY: header, BEST_ROUND: best, CONTINUES: continues}
    for name, value in {**headers, AppConstants.CURRENT_ROUND: round_}.items():
        if value is not None:
            shareable.set_header(name, value)
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
        assert {"bce/Edema", "bce/Nodule/Mass", "train_loss"} <= set(measured)

    def test_says_how_many_images_it_trained_on_and_no_label_counts(self, start, body):
        dxo = from_shareable(carried_out(start, "train", task(body, COLUMNS), epochs=3))
        assert dxo.get_meta_prop(MetaKey.NUM_STEPS_CURRENT_ROUND) == 60
        assert dxo.get_meta_prop(wire.POSITIVES) is None

    def test_reports_counts_only_when_told_to(self, start, site, body):
        dxo = from_shareable(carried_out(start, "train", task(body, COLUMNS), report_counts=True))
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


class TestSend:
    def test_differences_are_from_what_was_received(self, start, body):
        whole = from_shareable(carried_out(start, "train", task(body, COLUMNS)))
        dxo = from_shareable(carried_out(start, "train", task(body, COLUMNS), send="differences"))
        assert dxo.data_kind == DataKind.WEIGHT_DIFF
        received = {**body, "head/kernel": [[1, 2]] * FEATURES, "head/bias": [1, 2]}
        for name, value in dxo.data.items():
            np.testing.assert_allclose(received[name] + value, whole.data[name], rtol=1e-6)

    def test_a_column_that_the_server_lacks_counts_as_zeros_there(self, start, body):
        sent = {"Edema": column(1)}
        whole = from_shareable(carried_out(start, "train", task(body, sent)))
        dxo = from_shareable(carried_out(start, "train", task(body, sent), send="differences"))
        kernel = dxo.data["head/kernel"]
        np.testing.assert_array_equal(kernel[:, 1], whole.data["head/kernel"][:, 1])

    def test_another_word_keeps_the_site_from_training(self, start, body, caplog):
        carried_out(start, "train", task(body, COLUMNS), send="deltas")
        assert f"{CANNOT_TAKE_PART}send must be one of" in caplog.text


def weights(reply):
    return from_shareable(reply).data


class TestContinuation:
    """A run of two rounds in one process, and the same in two."""

    def test_a_new_process_of_the_job_goes_on_with_the_optimizer(self, start, body):
        executor, fl_ctx = start()
        for round_ in (0, 1):
            last = executor.execute("train", task(body, COLUMNS, round_=round_), fl_ctx, Signal())
        for round_ in (0, 1, 1):  # the last one over again, from the state before it
            again = carried_out(start, "train", task(body, COLUMNS, round_=round_))
        for name, value in weights(last).items():
            assert value.tobytes() == weights(again)[name].tobytes()

    def test_a_fresh_run_takes_up_nothing(self, start, body):
        first = carried_out(start, "train", task(body, COLUMNS, round_=0))
        again = carried_out(start, "train", task(body, COLUMNS, round_=0))
        for name, value in weights(first).items():
            assert value.tobytes() == weights(again)[name].tobytes()

    def test_a_continued_job_takes_up_the_earlier_ones_state(self, start, body, tmp_path):
        executor, fl_ctx = start()
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        last = executor.execute("train", task(body, COLUMNS, round_=1), fl_ctx, Signal())
        checkpoints = tmp_path / "server" / "checkpoints"
        executor, fl_ctx = start()
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        (checkpoints / "job").rename(checkpoints / "earlier")
        continues = {"jobs": ["earlier"], "round": 1}
        again = carried_out(start, "train", task(body, COLUMNS, round_=1, continues=continues))
        for name, value in weights(last).items():
            assert value.tobytes() == weights(again)[name].tobytes()

    def test_a_job_whose_state_is_ahead_of_the_server_is_passed_over_for_the_one_before(
        self, start, body, tmp_path
    ):
        checkpoints = tmp_path / "server" / "checkpoints"
        executor, fl_ctx = start()
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        last = executor.execute("train", task(body, COLUMNS, round_=1), fl_ctx, Signal())
        (checkpoints / "job").rename(checkpoints / "failed")  # its first round was never finished
        (checkpoints / "failed" / PREVIOUS_FILE).unlink()
        carried_out(start, "train", task(body, COLUMNS, round_=0))
        (checkpoints / "job").rename(checkpoints / "earlier")
        continues = {"jobs": ["failed", "earlier"], "round": 1}
        again = carried_out(start, "train", task(body, COLUMNS, round_=1, continues=continues))
        for name, value in weights(last).items():
            assert value.tobytes() == weights(again)[name].tobytes()

    def test_a_site_without_state_says_that_it_starts_afresh(self, start, body, caplog):
        caplog.set_level("INFO")
        continues = {"jobs": ["earlier"], "round": 3}
        carried_out(start, "train", task(body, COLUMNS, continues=continues))
        assert "no state of the earlier run for this round" in caplog.text

    def test_a_site_with_other_classes_starts_afresh_and_says_so(self, start, site, body, caplog):
        caplog.set_level("INFO")
        carried_out(start, "train", task(body, COLUMNS, round_=0))
        Path(site.table).write_text('{"north": {"classes": ["Edema"], "images": 20}}')
        del site.training_labels  # which a process reads once
        sent = {"Edema": column(1)}
        reply = carried_out(start, "train", task(body, sent, round_=1))
        assert reply.get_return_code() == ReturnCode.OK
        assert "classes are not those of job job any more" in caplog.text


class TestPersonal:
    def test_a_personal_head_is_warmed_up_once_and_then_the_sites_own(self, start, body, caplog):
        caplog.set_level("INFO")
        executor, fl_ctx = start(personal_head=True)
        executor.execute("train", task(body, round_=0), fl_ctx, Signal())
        trained = load_state(folder(executor, fl_ctx)).training["personal/head/kernel"]
        moved = {name: value + 1 for name, value in body.items()}
        executor.execute("train", task(moved, round_=1), fl_ctx, Signal())
        assert caplog.text.count("warmed up the columns of 2 classes") == 1
        kept = load(folder(executor, fl_ctx) / "site_last.npz")
        own = wire.split(kept.variables)[1]["Edema"][0]
        np.testing.assert_array_equal(own, trained[:, 0])
        np.testing.assert_array_equal(kept.variables["dense/bias"], moved["dense/bias"])

    @pytest.mark.parametrize("send", ["weights", "differences"])
    def test_a_personal_head_is_not_in_the_result(self, start, body, send):
        reply = carried_out(start, "train", task(body), personal_head=True, send=send)
        assert set(weights(reply)) == set(body)

    def test_fedbn_keeps_its_own_batch_norm_whatever_comes(self, start, body):
        executor, fl_ctx = start(strategy="fedbn")
        first = executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        moved = {name: value + 1 for name, value in body.items()}
        executor.execute("validate", task(moved, COLUMNS, round_=None), fl_ctx, Signal())
        kept = load(folder(executor, fl_ctx) / "site_last.npz").variables
        np.testing.assert_array_equal(kept["bn/gamma"], weights(first)["bn/gamma"])
        np.testing.assert_array_equal(kept["dense/bias"], moved["dense/bias"])

    def test_the_best_model_has_the_personal_variables_of_its_round(self, start, body):
        executor, fl_ctx = start(strategy="fedbn")
        trained = [
            weights(
                executor.execute("train", task(body, COLUMNS, round_=r, best=b), fl_ctx, Signal())
            )
            for r, b in ((0, None), (1, None), (2, 1))
        ]
        executor.execute("test", task(body, COLUMNS, round_=None, best=1), fl_ctx, Signal())
        best = load(folder(executor, fl_ctx) / "site_best.npz")
        np.testing.assert_array_equal(best.variables["bn/gamma"], trained[0]["bn/gamma"])
        assert best.manifest["round"] == 1

    def test_the_best_round_is_remembered_by_a_new_process(self, start, body):
        first = weights(
            carried_out(start, "train", task(body, COLUMNS, round_=0), strategy="fedbn")
        )
        for round_, best in ((1, None), (2, 1)):
            carried_out(
                start, "train", task(body, COLUMNS, round_=round_, best=best), strategy="fedbn"
            )
        executor, fl_ctx = start(strategy="fedbn")
        executor.execute("test", task(body, COLUMNS, round_=None, best=1), fl_ctx, Signal())
        best = load(folder(executor, fl_ctx) / "site_best.npz").variables
        np.testing.assert_array_equal(best["bn/gamma"], first["bn/gamma"])

    def test_without_personal_variables_no_model_stays_at_the_site(self, start, body):
        executor, fl_ctx = start()
        executor.execute("train", task(body, COLUMNS, round_=0), fl_ctx, Signal())
        executor.execute("test", task(body, COLUMNS, round_=None), fl_ctx, Signal())
        names = [path.name for path in folder(executor, fl_ctx).iterdir()]
        assert names == ["site_state.npz"]  # of one round, so none before it


def folder(executor, fl_ctx):
    return site_folder(fl_ctx, fl_ctx.get_job_id())


WITHHOLDS_EDEMA = {"share": ["Nodule/Mass"], "report_counts": True}
TASKS = ("train", "validate", "test")


class TestCounts:
    def sent(self, start, body, **args):
        """What each task sends: data and meta of a DXO."""
        executor, fl_ctx = start(**{"report_counts": True, **args})
        replies = [executor.execute(name, task(body, COLUMNS), fl_ctx, Signal()) for name in TASKS]
        return [{**dxo.data, **dxo.meta} for dxo in map(from_shareable, replies)]

    def test_go_with_an_evaluation_when_asked_for(self, start, site, body):
        _, *evaluations = self.sent(start, body)
        for split, sent in zip(("validation", "test"), evaluations, strict=True):
            labels = np.concatenate([y for _, y in site.data(split).as_numpy_iterator()])
            assert sent["images"] == 20
            for column, held in enumerate(["Edema", "Nodule/Mass"]):
                assert sent[f"positives/{held}"] == (labels[:, column] == 1).sum() > 0
                assert sent[f"negatives/{held}"] == (labels[:, column] == 0).sum() > 0

    def test_stay_where_the_policy_keeps_them_and_the_log_says_so(self, start, body, caplog):
        caplog.set_level("INFO")
        for sent in self.sent(start, body, policy={}):
            assert not counts_in(sent)
        assert caplog.text.count("this site's policy keeps them here") == 1

    def test_are_not_sent_unasked_though_the_policy_lets_them(self, start, body, caplog):
        caplog.set_level("INFO")
        for sent in self.sent(start, body, policy={"report_counts": True}, report_counts=False):
            assert not counts_in(sent)
        assert "keeps them here" not in caplog.text


def counts_in(sent):
    return [name for name in sent if "positives" in name or "negatives" in name or name == "images"]


class TestPolicy:
    @pytest.mark.parametrize("args", [{}, {"personal_head": True}, {"send": "differences"}])
    def test_a_withheld_class_is_in_nothing_that_is_sent(self, start, body, args):
        columns = {} if "personal_head" in args else {"Nodule/Mass": column(2)}
        executor, fl_ctx = start(policy=WITHHOLDS_EDEMA, report_counts=True, **args)
        for name in TASKS:
            reply = executor.execute(name, task(body, columns), fl_ctx, Signal())
            assert reply.get_return_code() == ReturnCode.OK
            assert "Nodule/Mass" in str(reply)
            assert "Edema" not in str(reply)

    def test_its_unit_is_cut_out(self, start, body):
        sent = carried_out(
            start, "train", task(body, {"Nodule/Mass": column(2)}), policy=WITHHOLDS_EDEMA
        )
        assert weights(sent)["head/kernel"].shape == (FEATURES, 1)

    def test_a_personal_head_is_trained_for_all_classes(self, start, body):
        executor, fl_ctx = start(policy=WITHHOLDS_EDEMA, personal_head=True)
        reply = executor.execute("train", task(body, round_=0), fl_ctx, Signal())
        told = from_shareable(reply).meta[MetaKey.INITIAL_METRICS]
        assert told["warmed_up"] == 1 and "train_loss" not in told  # of the withheld class, too
        executor.execute("test", task(body, round_=None), fl_ctx, Signal())
        kept = load(folder(executor, fl_ctx) / "site_best.npz")
        assert wire.classes_of(kept.variables) == ("Edema", "Nodule/Mass")

    @pytest.mark.parametrize(
        ("policy", "reason"),
        [
            ({"min_images": 21}, "'min_images' 21 training images; there are 20"),
            ({"share": []}, "lets none of its classes take part"),
            ({"shares": ["Edema"]}, r"got ['shares']. Check the spelling"),
            ({"share": "Edema"}, "'share' needs a list of class names"),
        ],
    )
    def test_one_that_keeps_the_site_away_says_why_in_its_log_alone(
        self, start, body, caplog, policy, reason
    ):
        executor, fl_ctx = start(policy=policy)
        assert f"{CANNOT_TAKE_PART}" in caplog.text and reason in caplog.text
        for name in TASKS:
            reply = executor.execute(name, task(body, COLUMNS), fl_ctx, Signal())
            assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
            assert reason not in str(reply)


class TestTensorFlow:
    def test_is_set_up_before_a_policy_can_look_at_batches(self, site, monkeypatch, tmp_path):
        order = []
        monkeypatch.setattr(
            tensorflow_runtime, "configure", lambda *args: order.append(args) or False
        )
        monkeypatch.setattr(type(site), "data", lambda *args, **options: order.append("data"))
        executor, fl_ctx = KerasExecutor(seed=3, threads=2), FLContext()
        fl_ctx.set_prop(ReservedKey.ENGINE, Engine(tmp_path, site=site), private=True, sticky=False)
        policy = {"min_positives": 1}
        fl_ctx.set_prop(FLContextKey.SCOPE_PROPERTIES, policy, private=True, sticky=True)
        for event in (EventType.ABOUT_TO_START_RUN, EventType.START_RUN):
            for component in (DeclareClasses(), executor):
                with suppress(AttributeError):
                    component.handle_event(event, fl_ctx)
        assert order[:2] == [(2, 3, False), "data"]


class TestMixedPrecision:
    def test_a_site_without_a_gpu_says_that_it_computes_in_float32(self, start, caplog):
        start(mixed_precision=True)
        assert "mixed precision needs a GPU; this site has none: float32" in caplog.text


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
