import numpy as np
import pytest

from flare import Engine, context
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.server.models.evaluated_model import GivenModelLocator
from surgical_aggregation.wire import variables as wire

BODY = {"conv/kernel": np.float32([1, 2])}
VARIABLES = wire.join(BODY, {"Nodule/Mass": (np.float32([3, 4]), np.float32([5]))})


@pytest.fixture
def fl_ctx(tmp_path):
    """The server's context, where earlier jobs left best models and there is a file as well."""
    save(Checkpoint(VARIABLES, {}), tmp_path / "server/checkpoints/earlier/best.npz")
    save(Checkpoint(BODY, {}), tmp_path / "server/checkpoints/headless/best.npz")
    save(Checkpoint({**VARIABLES, "conv/kernel": np.float32([7, 7])}, {}), tmp_path / "file.npz")
    return context(engine=Engine(tmp_path))


def located(locator, fl_ctx):
    (name,) = locator.get_model_names(fl_ctx)
    return locator.locate_model(name, fl_ctx).data["conv/kernel"].tolist()


def test_an_earlier_jobs_best_model_is_found_by_its_id(fl_ctx, panics):
    assert located(GivenModelLocator(job="earlier"), fl_ctx) == [1, 2]
    assert panics == []


def test_a_checkpoint_is_found_by_its_path(fl_ctx, tmp_path):
    assert located(GivenModelLocator(str(tmp_path / "file.npz")), fl_ctx) == [7, 7]


def test_the_job_goes_before_the_file(fl_ctx, tmp_path):
    assert located(GivenModelLocator(str(tmp_path / "file.npz"), "earlier"), fl_ctx) == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "an evaluation needs a model; none is configured. Give the id of an earlier job"),
        ({"file": "nowhere.npz"}, "'nowhere.npz' does not exist"),
        ({"job": "../earlier"}, "'../earlier' left none in"),
        ({"job": "headless"}, "has no column of any class, so nothing can be measured"),
    ],
)
def test_without_a_model_to_measure_the_run_ends_with_the_reason(fl_ctx, panics, arguments, reason):
    assert GivenModelLocator(**arguments).get_model_names(fl_ctx) == []
    assert reason in panics[0]
