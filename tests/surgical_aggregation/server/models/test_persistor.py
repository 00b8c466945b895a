"""Rule 4 of the design: best and last on disk, inside and outside the job's workspace."""

import dataclasses
import errno

import numpy as np
import pytest
from nvflare.app_common.abstract.model import ModelLearnableKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.checkpoints import checkpoint
from surgical_aggregation.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointError,
    digest,
    load,
    save,
)
from surgical_aggregation.server.models.best_model import BEST, BEST_DROPPED
from surgical_aggregation.server.models.global_model import (
    GlobalModel,
    from_learnable,
    to_learnable,
)
from surgical_aggregation.server.models.initial_body import InitialBody
from surgical_aggregation.server.models.persistor import CheckpointPersistor
from surgical_aggregation.wire import variables as wire

TWO = np.float32([1, 2])
BODY = {"conv/kernel": TWO}
COLUMN = (np.float32([3, 4]), np.float32([5]))
MODEL = GlobalModel(BODY, {"Nodule/Mass": COLUMN}, {"head_features": 2, "job": "a"})


def persistor_context(folder, initial_body=None):
    return context(engine=Engine(folder, initial_body=InitialBody(initial_body)))


class TestLoad:
    def test_starts_from_the_checkpoint_and_records_its_digest(self, tmp_path, panics):
        path = tmp_path / "start.npz"
        save(
            Checkpoint(
                wire.join(BODY, {"Edema": COLUMN}), {"head_features": 2}, {"mean/conv/kernel": TWO}
            ),
            path,
        )
        learnable = CheckpointPersistor().load(persistor_context(tmp_path, str(path)))
        assert sorted(learnable[ModelLearnableKey.WEIGHTS]) == [
            "conv/kernel", "head/Edema/bias", "head/Edema/kernel",
        ]  # fmt: skip
        manifest = learnable[ModelLearnableKey.META]
        assert manifest["initial_body_sha256"] == digest(BODY)
        assert manifest["job"] == "job"
        assert manifest["round"] == 0
        assert from_learnable(learnable).moments["mean/conv/kernel"].tolist() == [1, 2]
        assert not panics

    @pytest.mark.parametrize(
        ("file", "reason"),
        [(None, "surgagg model init"), ("nowhere.npz", "nowhere.npz' does not exist")],
    )
    def test_an_unusable_start_ends_the_run_with_the_reason(self, tmp_path, panics, file, reason):
        CheckpointPersistor().load(persistor_context(tmp_path, file))
        assert reason in panics[0]

    def test_a_checkpoint_without_features_ends_the_run(self, tmp_path, panics):
        save(Checkpoint(BODY, {}), tmp_path / "start.npz")
        CheckpointPersistor().load(persistor_context(tmp_path, str(tmp_path / "start.npz")))
        assert "head_features" in panics[0]

    def test_a_model_with_a_class_spelt_twice_is_opened_and_told_of(self, tmp_path, logged):
        path = tmp_path / "start.npz"
        variables = wire.join(BODY, {"Edema": COLUMN, "Mass": COLUMN, "edema": COLUMN})
        save(Checkpoint(variables, {"head_features": 2}), path)
        learnable = CheckpointPersistor().load(persistor_context(tmp_path, str(path)))
        assert sorted(from_learnable(learnable).columns) == ["Edema", "Mass", "edema"]
        assert "columns of 'Edema' and 'edema', which are one class" in logged["warning"][0]

    def test_a_job_without_initial_body_component_is_told_so(self, tmp_path, panics):
        CheckpointPersistor().load(context(engine=Engine(tmp_path)))
        assert "InitialBody component with id 'initial_body'" in panics[0]


def copies(folder, name):
    """Where a model of the job is: in its workspace and outside of it."""
    return [
        folder / "server" / "job" / "models" / name,
        folder / "server" / "checkpoints" / "job" / name,
    ]


class TestSave:
    def test_last_is_in_the_job_and_outside_of_it(self, tmp_path):
        CheckpointPersistor().save(to_learnable(MODEL), persistor_context(tmp_path))
        for path in copies(tmp_path, "last.npz"):
            again = load(path)
            assert list(again.variables) == list(wire.join(BODY, {"Nodule/Mass": COLUMN}))
            assert again.manifest["head_features"] == 2

    def test_best_is_written_when_announced_and_not_before(self, tmp_path):
        fl_ctx = persistor_context(tmp_path)
        persistor = CheckpointPersistor()
        persistor.save(to_learnable(MODEL), fl_ctx)
        paths = copies(tmp_path, "best.npz")
        assert not any(path.exists() for path in paths)
        fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, to_learnable(MODEL), private=True, sticky=False)
        fl_ctx.set_prop(BEST, {"round": 4, "value": 0.1}, private=True, sticky=False)
        persistor.handle_event(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, fl_ctx)
        for path in [*paths, *copies(tmp_path, "last.npz")]:
            assert load(path).manifest["best"] == {"round": 4, "value": 0.1}

    def test_the_record_of_the_best_goes_with_every_later_model(self, tmp_path):
        fl_ctx = persistor_context(tmp_path)
        persistor = CheckpointPersistor()
        announce_best(persistor, fl_ctx, {"round": 4})
        persistor.save(to_learnable(MODEL), persistor_context(tmp_path))
        assert load(copies(tmp_path, "last.npz")[0]).manifest["best"] == {"round": 4}

    def test_moments_are_in_the_file_of_the_model(self, tmp_path):
        moments = {"mean/conv/kernel": TWO}
        learnable = to_learnable(dataclasses.replace(MODEL, moments=moments))
        CheckpointPersistor().save(learnable, persistor_context(tmp_path))
        again = load(copies(tmp_path, "last.npz")[0])
        assert again.moments["mean/conv/kernel"].tolist() == [1, 2]
        assert "mean/conv/kernel" not in again.variables


def announce_best(persistor, fl_ctx, record):
    fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, to_learnable(MODEL), private=True, sticky=False)
    fl_ctx.set_prop(BEST, record, private=True, sticky=False)
    persistor.handle_event(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, fl_ctx)


class TestFullDisk:
    @pytest.fixture
    def written(self, tmp_path):
        """A persistor that has written a best model, and its context."""
        fl_ctx = persistor_context(tmp_path)
        persistor = CheckpointPersistor()
        announce_best(persistor, fl_ctx, {"round": 4})
        return persistor, fl_ctx

    @pytest.fixture
    def full(self, written, monkeypatch):
        def write(file, manifest, variables):
            file.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(checkpoint, "_write", write)

    def test_a_round_ends_the_run_with_the_file_and_the_reason(self, written, full, tmp_path):
        persistor, fl_ctx = written
        with pytest.raises(CheckpointError, match=r"last\.npz' could not .* No space left"):
            persistor.save(to_learnable(MODEL), fl_ctx)
        assert load(copies(tmp_path, "last.npz")[0]).manifest["best"] == {"round": 4}

    def test_a_best_model_ends_the_run_too_for_flare_would_go_on(
        self, written, full, panics, tmp_path
    ):
        announce_best(*written, {"round": 5})
        assert "best.npz' could not be written: No space left on device" in panics[0]
        assert load(copies(tmp_path, "best.npz")[0]).manifest["best"] == {"round": 4}

    def test_a_best_model_that_cannot_be_taken_over_ends_the_run_before_it_begins(
        self, written, full, panics, tmp_path
    ):
        start = copies(tmp_path, "last.npz")[1]
        CheckpointPersistor().load(persistor_context(tmp_path, str(start)))
        assert "best.npz' could not be written" in panics[0]


class TestContinue:
    """From an earlier job's last.npz, with or without its best.npz beside it."""

    RECORD = {"round": 1, "metric": "bce", "value": 0.25, "sites": {"a": 0.25}, "classes": {}}  # noqa: RUF012

    def earlier(self, folder, record=RECORD, best=RECORD, round_=3):
        manifest = {"head_features": 2, "round": round_, "job": "a", "classes": {"Mass": {}}}
        folder.mkdir(exist_ok=True)
        save(Checkpoint(BODY, {**manifest, "best": record}), folder / "last.npz")
        if best is not None:
            other = {"conv/kernel": np.float32([7, 7])}
            save(Checkpoint(other, {**manifest, "round": 1, "best": best}), folder / "best.npz")
        return str(folder / "last.npz")

    def start(self, folder, file):
        persistor = CheckpointPersistor()
        fl_ctx = persistor_context(folder, file)
        return persistor, fl_ctx, persistor.load(fl_ctx)[ModelLearnableKey.META]

    def test_round_classes_and_history_go_on(self, tmp_path, panics):
        _, _, manifest = self.start(tmp_path, self.earlier(tmp_path / "a"))
        assert (manifest["round"], manifest["job"]) == (3, "job")
        assert manifest["classes"] == {"Mass": {}}
        assert manifest["history"] == [{"job": "a", "rounds": [0, 3]}]
        assert not panics

    def test_the_best_model_beside_it_is_this_runs_until_a_better_one_comes(self, tmp_path, logged):
        persistor, fl_ctx, manifest = self.start(tmp_path, self.earlier(tmp_path / "a"))
        assert fl_ctx.get_prop(BEST) == self.RECORD
        assert "best" not in manifest  # it is not a fact of the model
        for path in copies(tmp_path, "best.npz"):
            best = load(path)
            assert best.variables["conv/kernel"].tolist() == [7, 7]
            assert (best.manifest["job"], best.manifest["best"]) == ("a", self.RECORD)
        persistor.save(to_learnable(MODEL), persistor_context(tmp_path))
        assert load(copies(tmp_path, "last.npz")[0]).manifest["best"] == self.RECORD
        announce_best(persistor, persistor_context(tmp_path), {"round": 4})
        assert load(copies(tmp_path, "best.npz")[0]).variables["conv/kernel"].tolist() == [1, 2]
        assert logged["warning"] == []

    def test_the_best_model_of_a_checkpoint_that_no_job_wrote_is_not_this_runs(self, tmp_path):
        (tmp_path / "a").mkdir()
        for name in ("last.npz", "best.npz"):  # as training alone leaves them
            manifest = {"head_features": 2, "round": 3, "best": self.RECORD}
            save(Checkpoint(BODY, manifest), tmp_path / "a" / name)
        _, fl_ctx, manifest = self.start(tmp_path, str(tmp_path / "a" / "last.npz"))
        assert (manifest["round"], fl_ctx.get_prop(BEST)) == (0, None)
        assert not any(path.exists() for path in copies(tmp_path, "best.npz"))

    @pytest.mark.parametrize("best", [None, {"round": 2, "value": 0.1}])
    def test_without_it_the_run_starts_without_and_says_so(self, tmp_path, logged, best):
        file = self.earlier(tmp_path / "a", best=best)
        persistor, fl_ctx, _ = self.start(tmp_path, file)
        assert fl_ctx.get_prop(BEST) is None
        assert not any(path.exists() for path in copies(tmp_path, "best.npz"))
        assert "best model, of round 1, is not beside the checkpoint" in logged["warning"][0]
        persistor.save(to_learnable(MODEL), persistor_context(tmp_path))
        assert "best" not in load(copies(tmp_path, "last.npz")[0]).manifest

    def test_a_damaged_one_is_as_good_as_none(self, tmp_path, logged):
        file = self.earlier(tmp_path / "a")
        (tmp_path / "a" / "best.npz").write_bytes(b"half")
        _, fl_ctx, _ = self.start(tmp_path, file)
        assert fl_ctx.get_prop(BEST) is None and "not a checkpoint" in logged["warning"][0]

    def test_a_checkpoint_that_is_the_best_model_itself_needs_none_beside_it(
        self, tmp_path, logged
    ):
        file = self.earlier(tmp_path / "a", record={**self.RECORD, "round": 3}, best=None)
        _, fl_ctx, _ = self.start(tmp_path, file)
        assert fl_ctx.get_prop(BEST)["round"] == 3 and logged["warning"] == []
        assert load(copies(tmp_path, "best.npz")[0]).variables["conv/kernel"].tolist() == [1, 2]

    def test_one_that_cannot_be_compared_is_removed(self, tmp_path):
        persistor, _, _ = self.start(tmp_path, self.earlier(tmp_path / "a"))
        persistor.handle_event(BEST_DROPPED, persistor_context(tmp_path))
        assert not any(path.exists() for path in copies(tmp_path, "best.npz"))
        assert (tmp_path / "a" / "best.npz").exists()
        persistor.save(to_learnable(MODEL), persistor_context(tmp_path))
        assert "best" not in load(copies(tmp_path, "last.npz")[0]).manifest


class TestContinueAJob:
    """By the id of an earlier job at this server, whatever the initial body."""

    def start(self, folder, continues, initial_body="nowhere.npz"):
        return CheckpointPersistor(continues=continues).load(
            persistor_context(folder, initial_body)
        )

    def earlier(self, folder, job="a", **manifest):
        path = folder / "server" / "checkpoints" / job / "last.npz"
        facts = {"head_features": 2, "round": 3, "job": job, **manifest}
        save(Checkpoint(BODY, facts, {"mean/conv/kernel": TWO}), path)
        return path

    def test_its_last_model_round_and_moments_are_taken_and_no_initial_body(self, tmp_path, panics):
        self.earlier(tmp_path, "other", round=9)
        self.earlier(tmp_path)
        learnable = self.start(tmp_path, "a")
        manifest = learnable[ModelLearnableKey.META]
        assert (manifest["round"], manifest["job"]) == (3, "job")
        assert manifest["history"] == [{"job": "a", "rounds": [0, 3]}]
        assert from_learnable(learnable).moments["mean/conv/kernel"].tolist() == [1, 2]
        assert not panics

    def test_its_best_model_is_taken_over_too(self, tmp_path, panics):
        record = {"round": 1, "metric": "bce", "value": 0.25, "sites": {}, "classes": {}}
        last = self.earlier(tmp_path, best=record)
        save(Checkpoint(BODY, {"head_features": 2, "best": record}), last.with_name("best.npz"))
        self.start(tmp_path, "a")
        for path in copies(tmp_path, "best.npz"):
            assert load(path).manifest["best"] == record
        assert not panics

    @pytest.mark.parametrize("job", ["b", "../a", "../checkpoints/a", "/etc", ".", "..", "*", "a/"])
    def test_anything_but_the_id_of_such_a_job_ends_the_run_with_those_that_are(
        self, tmp_path, panics, job
    ):
        self.earlier(tmp_path)
        save(Checkpoint(BODY, {}), tmp_path / "server" / "a" / "last.npz")  # outside
        assert self.start(tmp_path, job).is_empty()
        assert f"{job!r} left none in" in panics[0]
        assert panics[0].endswith("the newest first: a.")

    def test_without_one_it_starts_from_the_initial_body(self, tmp_path, panics):
        self.earlier(tmp_path)
        path = tmp_path / "start.npz"
        save(Checkpoint(BODY, {"head_features": 2}), path)
        learnable = self.start(tmp_path, "", initial_body=str(path))
        assert learnable[ModelLearnableKey.META]["round"] == 0 and not panics
