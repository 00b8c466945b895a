"""Rule 4 of the design: best and last on disk, inside and outside the job's workspace."""

import numpy as np
import pytest
from nvflare.apis.dxo import DataKind
from nvflare.app_common.abstract.model import ModelLearnableKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context, global_model
from surgical_aggregation import wire
from surgical_aggregation.best_model import BEST
from surgical_aggregation.checkpoint import Checkpoint, digest, load, save
from surgical_aggregation.global_model import to_learnable
from surgical_aggregation.initial_body import InitialBody
from surgical_aggregation.locator import CheckpointLocator
from surgical_aggregation.persistor import CheckpointPersistor

BODY = {"conv/kernel": np.float32([1, 2])}
COLUMN = (np.float32([3, 4]), np.float32([5]))
MODEL = global_model(BODY, {"Nodule/Mass": COLUMN})


@pytest.fixture
def panics(monkeypatch):
    """Reasons with which components ended the run."""
    reasons = []
    monkeypatch.setattr(
        CheckpointPersistor, "system_panic", lambda self, reason, fl_ctx: reasons.append(reason)
    )
    return reasons


def persistor_context(folder, initial_body=None):
    return context(engine=Engine(folder, initial_body=InitialBody(initial_body)))


class TestLoad:
    def test_starts_from_the_checkpoint_and_records_its_digest(self, tmp_path, panics):
        path = tmp_path / "start.npz"
        save(
            Checkpoint(
                wire.join(BODY, {"Edema": COLUMN}), {"head_features": 2, "best": {"round": 9}}
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
        assert "best" not in manifest
        assert not panics

    @pytest.mark.parametrize(
        ("file", "reason"),
        [(None, "surgagg init"), ("nowhere.npz", "nowhere.npz' does not exist")],
    )
    def test_an_unusable_start_ends_the_run_with_the_reason(self, tmp_path, panics, file, reason):
        CheckpointPersistor().load(persistor_context(tmp_path, file))
        assert reason in panics[0]

    def test_a_checkpoint_without_features_ends_the_run(self, tmp_path, panics):
        save(Checkpoint(BODY, {}), tmp_path / "start.npz")
        CheckpointPersistor().load(persistor_context(tmp_path, str(tmp_path / "start.npz")))
        assert "head_features" in panics[0]

    def test_a_job_without_initial_body_component_is_told_so(self, tmp_path, panics):
        CheckpointPersistor().load(context(engine=Engine(tmp_path)))
        assert "InitialBody component with id 'initial_body'" in panics[0]


class TestSave:
    def copies(self, folder, name):
        return [
            folder / "server" / "job" / "models" / name,
            folder / "server" / "checkpoints" / "job" / name,
        ]

    def test_last_is_in_the_job_and_outside_of_it(self, tmp_path):
        CheckpointPersistor().save(to_learnable(MODEL), persistor_context(tmp_path))
        for path in self.copies(tmp_path, "last.npz"):
            again = load(path)
            assert list(again.variables) == list(wire.join(BODY, {"Nodule/Mass": COLUMN}))
            assert again.manifest["head_features"] == 2

    def test_best_is_written_when_announced_and_not_before(self, tmp_path):
        fl_ctx = persistor_context(tmp_path)
        persistor = CheckpointPersistor()
        persistor.save(to_learnable(MODEL), fl_ctx)
        paths = self.copies(tmp_path, "best.npz")
        assert not any(path.exists() for path in paths)
        fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, to_learnable(MODEL), private=True, sticky=False)
        fl_ctx.set_prop(BEST, {"round": 4, "value": 0.1}, private=True, sticky=False)
        persistor.handle_event(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, fl_ctx)
        for path in paths:
            assert load(path).manifest["best"] == {"round": 4, "value": 0.1}


class TestLocator:
    def test_finds_what_the_persistor_wrote(self, tmp_path):
        fl_ctx = persistor_context(tmp_path)
        CheckpointPersistor().save(to_learnable(MODEL), fl_ctx)
        locator = CheckpointLocator("last")
        assert locator.get_model_names(fl_ctx) == ["last"]
        dxo = locator.locate_model("last", fl_ctx)
        assert dxo.data_kind == DataKind.WEIGHTS
        assert dxo.data["head/Nodule/Mass/bias"].tolist() == [5]
        assert dxo.meta == {}

    def test_names_nothing_where_there_is_no_model(self, tmp_path):
        assert CheckpointLocator("best").get_model_names(persistor_context(tmp_path)) == []

    def test_refuses_another_model(self):
        with pytest.raises(ValueError, match="'best' or 'last'; got 'first'"):
            CheckpointLocator("first")
