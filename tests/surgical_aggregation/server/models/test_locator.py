import numpy as np
import pytest
from nvflare.apis.dxo import DataKind
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.server.models.global_model import CONTINUES, MODEL_ROUND
from surgical_aggregation.server.models.locator import MODEL_HAS_HEAD, CheckpointLocator
from surgical_aggregation.wire import variables as wire


@pytest.fixture
def fl_ctx(tmp_path):
    """The server's context in a job that has been through 7 rounds."""
    manifest = {"head_features": 2, "round": 7, "classes": {"Nodule/Mass": {}}}
    columns = {"Nodule/Mass": (np.float32([3, 4]), np.float32([5]))}
    save(Checkpoint(wire.join({}, columns), manifest), tmp_path / "server/job/models/last.npz")
    return context(engine=Engine(tmp_path))


def sent(locator, fl_ctx, owner):
    """The task with a model of some name, as it goes out."""
    task = Shareable()
    fl_ctx.set_prop(AppConstants.MODEL_OWNER, owner, private=True, sticky=False)
    fl_ctx.set_prop(AppConstants.MODEL_TO_VALIDATE, task, private=True, sticky=False)
    locator.handle_event(AppEventType.SEND_MODEL_FOR_VALIDATION, fl_ctx)
    return task


def test_finds_the_variables_that_the_persistor_wrote_and_nothing_else(fl_ctx):
    locator = CheckpointLocator("last")
    assert locator.get_model_names(fl_ctx) == ["last"]
    dxo = locator.locate_model("last", fl_ctx)
    assert dxo.data_kind == DataKind.WEIGHTS
    assert dxo.data["head/Nodule/Mass/bias"].tolist() == [5]
    assert dxo.meta == {}


def test_the_server_learns_the_models_round_and_whether_it_has_a_head(tmp_path, fl_ctx):
    CheckpointLocator("last").locate_model("last", fl_ctx)
    assert fl_ctx.get_prop(MODEL_ROUND) == 7 and fl_ctx.get_prop(MODEL_HAS_HEAD) is True
    headless = Checkpoint({"conv/kernel": np.ones(2)}, {"head_features": 2})
    save(headless, tmp_path / "server/job/models/last.npz")
    CheckpointLocator("last").locate_model("last", fl_ctx)
    assert fl_ctx.get_prop(MODEL_ROUND) == 0 and fl_ctx.get_prop(MODEL_HAS_HEAD) is False


def test_its_tasks_tell_the_sites_the_models_round(fl_ctx):
    locator = CheckpointLocator("last")
    locator.locate_model("last", fl_ctx)
    assert sent(locator, fl_ctx, "SRV_last").get_header(MODEL_ROUND) == 7


def test_its_tasks_tell_a_site_what_the_run_continues(tmp_path, fl_ctx):
    locator = CheckpointLocator("last")
    locator.locate_model("last", fl_ctx)
    assert sent(locator, fl_ctx, "SRV_last").get_header(CONTINUES) is None
    history = [{"job": "a", "rounds": [0, 7]}]
    manifest = {"head_features": 2, "round": 7, "history": history}
    save(Checkpoint({}, manifest), tmp_path / "server/job/models/last.npz")
    locator.locate_model("last", fl_ctx)
    told = sent(locator, fl_ctx, "SRV_last").get_header(CONTINUES)
    assert told == {"jobs": ["a"], "round": 7}


def test_the_tasks_of_another_model_are_not_touched(fl_ctx):
    locator = CheckpointLocator("last")
    locator.locate_model("last", fl_ctx)
    assert sent(locator, fl_ctx, "SRV_best").get_header(MODEL_ROUND) is None


def test_names_nothing_where_there_is_no_model(fl_ctx):
    assert CheckpointLocator("best").get_model_names(fl_ctx) == []


def test_refuses_another_model():
    with pytest.raises(ValueError, match="'best' or 'last'; got 'first'"):
        CheckpointLocator("first")
