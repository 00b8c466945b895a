"""How many threads TensorFlow gets, and what its import leaves."""

import gc
import subprocess
import sys

import pytest
from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.site.training import tensorflow_setup


class TestThreads:
    def fl_ctx(self, job, **deploy_map):
        fl_ctx = FLContext()
        fl_ctx.set_prop(ReservedKey.RUN_NUM, job, private=False, sticky=False)
        meta = {"deploy_map": deploy_map}
        fl_ctx.set_prop(ReservedKey.JOB_META, meta, private=True, sticky=False)
        return fl_ctx

    def test_simulated_sites_share_the_cores(self, monkeypatch):
        monkeypatch.setattr(tensorflow_setup, "cores", lambda: 8)
        fl_ctx = self.fl_ctx("simulate_job", app_server=["server"], app_client=["a", "b", "c"])
        assert tensorflow_setup.threads_per_site(fl_ctx) == 2

    def test_a_site_has_at_least_one(self, monkeypatch):
        monkeypatch.setattr(tensorflow_setup, "cores", lambda: 2)
        fl_ctx = self.fl_ctx("simulate_job", app=[f"site-{i}" for i in range(10)])
        assert tensorflow_setup.threads_per_site(fl_ctx) == 1

    def test_a_real_site_has_its_machine_to_itself(self, monkeypatch):
        monkeypatch.setattr(tensorflow_setup, "cores", lambda: 8)
        fl_ctx = self.fl_ctx("5f0c", app_server=["server"], app_client=["a", "b", "c"])
        assert tensorflow_setup.threads_per_site(fl_ctx) == 8


@pytest.fixture(scope="module")
def imported():
    """What a process says that has imported TensorFlow: objects frozen, and packages it has."""
    program = """
import gc, sys
from surgical_aggregation.site.training import tensorflow_setup

tensorflow_setup.configure(1, 0)
print(gc.get_freeze_count())
print(*{"matplotlib", "pandas", "scipy", "sklearn"} & set(sys.modules))
import matplotlib.pyplot, pandas, scipy.stats, sklearn.linear_model
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return found.stdout.splitlines()


def test_what_tensorflow_is_made_of_is_not_looked_through_for_garbage(imported):
    assert int(imported[0]) > 100_000


def test_what_no_site_needs_is_not_imported_with_tensorflow_and_can_be_afterwards(imported):
    assert imported[1] == ""


@pytest.mark.parametrize("enable", [gc.enable, gc.disable])
def test_garbage_is_looked_for_afterwards_as_before(enable):
    before = gc.isenabled()
    try:
        enable()
        wanted = gc.isenabled()
        with tensorflow_setup._without_collecting():
            assert not gc.isenabled()
        assert gc.isenabled() == wanted
    finally:
        gc.unfreeze()
        gc.enable() if before else gc.disable()


def test_a_package_that_is_loaded_already_stays():
    with tensorflow_setup._without(["subprocess", "absent"]):
        assert sys.modules["subprocess"] is subprocess
        assert sys.modules["absent"] is None
    assert "absent" not in sys.modules
