from unittest.mock import Mock

import numpy as np
import pytest
from nvflare.apis.dxo import DataKind
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context, lists
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, save
from surgical_aggregation.server.models import evaluated_model, model_files
from surgical_aggregation.server.models.evaluated_model import CheckpointLocator
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import CONTINUES, MEASURED, MODEL_ROUND

BODY = {"conv/kernel": np.float32([1, 2])}
VARIABLES = wire.join(BODY, {"Nodule/Mass": (np.float32([3, 4]), np.float32([5]))})
LAST = "server/job/models/last.npz"


@pytest.fixture
def fl_ctx(tmp_path):
    """The server's context in a job after 7 rounds, where earlier jobs left models as well."""
    save(Checkpoint(VARIABLES, {"round": 7, "head_features": 2}), tmp_path / LAST)
    save(Checkpoint(VARIABLES, {}), tmp_path / "server/checkpoints/earlier/best.npz")
    save(Checkpoint(BODY, {}), tmp_path / "server/checkpoints/headless/best.npz")
    local = Checkpoint(VARIABLES, {"strategy": "fedbn"})
    save(local, tmp_path / "server/checkpoints/local/best.npz")
    save(Checkpoint({**VARIABLES, "conv/kernel": np.float32([7, 7])}, {}), tmp_path / "file.npz")
    return context(engine=Engine(tmp_path))


def sent(fl_ctx, owner="SRV_last"):
    """What locating the last model gives, and the task of a model as it goes out then."""
    locator, task = CheckpointLocator("last"), Shareable()
    dxo = locator.locate_model("last", fl_ctx)
    sending = {AppConstants.MODEL_OWNER: owner, AppConstants.MODEL_TO_VALIDATE: task}
    locator.handle_event(AppEventType.SEND_MODEL_FOR_VALIDATION, context(props=sending))
    return dxo, task


class TestCheckpointLocator:
    def test_finds_one_of_the_two_models_that_the_persistor_writes(self, fl_ctx):
        assert CheckpointLocator("last").get_model_names(fl_ctx) == ["last"]
        assert CheckpointLocator("best").get_model_names(fl_ctx) == []  # not written
        with pytest.raises(ValueError, match=r"one of \('best', 'last'\); got 'first'"):
            CheckpointLocator("first")

    def test_sites_get_its_variables_and_round_and_what_the_run_continues(self, fl_ctx, tmp_path):
        dxo, task = sent(fl_ctx)
        assert dxo.data_kind == DataKind.WEIGHTS and dxo.meta == {}
        assert lists(dxo.data) == lists(VARIABLES)
        assert (task.get_header(MODEL_ROUND), task.get_header(CONTINUES)) == (7, None)
        assert fl_ctx.get_prop(MEASURED) == {"round": 7, "has_head": True, "features": 2}
        assert MEASURED not in fl_ctx.get_all_public_props()
        save(Checkpoint(BODY, {"history": [{"job": "a", "rounds": [0, 7]}]}), tmp_path / LAST)
        _, task = sent(fl_ctx)
        assert task.get_header(MODEL_ROUND) == 0 and not fl_ctx.get_prop(MEASURED)["has_head"]
        assert task.get_header(CONTINUES) == {"jobs": ["a"], "round": 7}
        _, task = sent(fl_ctx, "SRV_best")  # another's
        assert task.get_header(MODEL_ROUND) is None


def test_a_model_belongs_to_its_study_before_it_is_written(fl_ctx, tmp_path, monkeypatch):
    fl_ctx.set_prop(FLContextKey.JOB_META, {"study": "heart"}, private=True, sticky=False)
    with monkeypatch.context() as patch:
        patch.setattr(model_files, "save", Mock(side_effect=OSError("killed")))
        with pytest.raises(CheckpointError, match="killed"):
            model_files.save_to_job(Checkpoint(VARIABLES, {}), "best.npz", fl_ctx)
    assert (tmp_path / "server/checkpoints/job/study.txt").read_text() == "heart"


class TestEvaluatedModelLocator:
    @pytest.mark.parametrize(("file", "job", "found"), [
        (None, "earlier", [1, 2]), ("file.npz", "", [7, 7]), ("file.npz", "earlier", [1, 2]),
    ], ids=["job", "file", "job before file"])  # fmt: skip
    def test_finds_an_earlier_jobs_best_model_or_a_file(
        self, fl_ctx, panics, tmp_path, monkeypatch, file, job, found
    ):
        monkeypatch.setenv("CXR_MODEL", str(tmp_path / "file.npz"))
        locator = evaluated_model.EvaluatedModelLocator(file and str(tmp_path / file), job)
        (name,) = locator.get_model_names(fl_ctx)
        assert locator.locate_model(name, fl_ctx).data["conv/kernel"].tolist() == found
        assert panics == []

    def test_a_job_that_brings_code_may_name_any_file(self, fl_ctx, panics, tmp_path):
        locator = evaluated_model.EvaluatedModelLocator(str(tmp_path / "file.npz"))
        assert locator.get_model_names(fl_ctx) == [] and len(panics) == 1
        fl_ctx.set_prop(FLContextKey.JOB_META, {"byoc": True}, private=True, sticky=False)
        assert locator.get_model_names(fl_ctx) == ["evaluated"] and len(panics) == 1

    @pytest.mark.parametrize(("arguments", "reason"), [
        ({}, "an evaluation needs a model; none is configured. Give the id of an earlier job"),
        ({"file": "checkpoints/nowhere.npz"}, "nowhere.npz' does not exist"),
        ({"file": "../file.npz"}, "a job may name only checkpoints below"),
        ({"job": "../earlier"}, "job '../earlier' has no best.npz in"),
        ({"job": "headless"}, "has no columns, so there is nothing to measure"),
        ({"job": "local"}, "is no site's model: with strategy 'fedbn' each site keeps a part"),
    ])  # fmt: skip
    def test_without_a_model_the_run_ends_with_the_reason(self, fl_ctx, panics, arguments, reason):
        locator = evaluated_model.EvaluatedModelLocator(**arguments)
        assert locator.get_model_names(fl_ctx) == []
        assert reason in panics[0]
