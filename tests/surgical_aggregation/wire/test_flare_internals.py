"""FLARE and TensorBoard as installed still have what the project needs beyond their promises."""

import subprocess
import sys

import pytest
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather
from nvflare.private.fed.server.server_runner import ServerRunner

from flare import context
from surgical_aggregation.wire import flare_internals


def test_flare_looks_at_a_workflows_rounds_before_every_one():
    workflow = ScatterAndGather(num_rounds=1, start_round=2)
    names = {"_start_round", "_num_rounds"}
    assert names < vars(workflow).keys()
    assert names < {*ScatterAndGather.control_flow.__code__.co_names}
    flare_internals.plan_rounds(workflow, 5, 3)
    assert (workflow._start_round, workflow._num_rounds) == (5, 3)


def test_flares_runner_asks_for_the_return_codes_that_end_a_job():
    assert set(ServerRunner.ABORT_RETURN_CODES) >= {"UNSAFE_JOB", "TASK_UNKNOWN"}
    runner = ServerRunner.__new__(ServerRunner)
    fl_ctx = context()
    fl_ctx.set_prop("__runner__", runner, private=True, sticky=False)
    flare_internals.end_for_no_return_code(fl_ctx)
    assert runner.ABORT_RETURN_CODES == [] != ServerRunner.ABORT_RETURN_CODES


@pytest.mark.parametrize("spared", [True, False])
def test_tensorboard_imports_no_tensorflow_where_its_own_switch_is_there(spared):
    switch = "flare_internals.tensorboard_without_tensorflow();" if spared else ""
    code = (
        "import sys, types; fake = types.ModuleType('tensorflow'); fake.__version__ = '2';"
        "sys.modules['tensorflow'] = fake;"
        f"from surgical_aggregation.wire import flare_internals; {switch}"
        "from tensorboard.compat import tf; print(tf.__version__)"
    )
    program = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert program.stdout.strip() == ("stub" if spared else "2"), program.stderr
