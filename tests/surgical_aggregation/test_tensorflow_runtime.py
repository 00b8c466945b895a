"""How many threads TensorFlow gets, and what its import leaves."""

import subprocess
import sys

import pytest
from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.fl_context import FLContext

from surgical_aggregation import tensorflow_runtime


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


@pytest.mark.parametrize("collecting", [True, False])
def test_what_tensorflow_is_made_of_is_not_looked_through_for_garbage(collecting):
    program = (
        "import gc\n"
        "from surgical_aggregation import tensorflow_runtime\n"
        f"gc.{'enable' if collecting else 'disable'}()\n"
        "tensorflow_runtime.configure(1, 0)\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 100_000)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [str(collecting), "True"]


def test_what_no_site_needs_is_not_imported_with_tensorflow_and_can_be_afterwards():
    program = """
import sys
from surgical_aggregation import tensorflow_runtime

tensorflow_runtime.configure(1, 0)
print(*{"matplotlib", "pandas", "scipy", "sklearn"} & set(sys.modules))
import matplotlib.pyplot, pandas, scipy.stats, sklearn.linear_model
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []


def test_a_package_that_is_loaded_already_stays():
    with tensorflow_runtime._without(["subprocess", "absent"]):
        assert sys.modules["subprocess"] is subprocess
        assert sys.modules["absent"] is None
    assert "absent" not in sys.modules
