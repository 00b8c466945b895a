"""How many threads TensorFlow gets, and what its import leaves."""

import subprocess
import sys

import pytest
from nvflare.apis.fl_constant import ReservedKey

from flare import context
from surgical_aggregation.site.training import tensorflow_setup


@pytest.mark.parametrize(("job", "sites", "threads"), [
    ("simulate_job", 3, 2), ("simulate_job", 10, 1), ("5f0c", 3, 8),
], ids=["simulated sites share the cores", "at least one", "a real site has all"])  # fmt: skip
def test_threads_of_a_site_on_eight_cores(monkeypatch, job, sites, threads):
    monkeypatch.setattr(tensorflow_setup, "cores", lambda: 8)
    clients = [f"site-{number}" for number in range(sites)]
    meta = {"deploy_map": {"app_server": ["server"], "app_client": clients}}
    fl_ctx = context(props={ReservedKey.JOB_META: meta})
    fl_ctx.set_prop(ReservedKey.RUN_NUM, job, private=False, sticky=False)
    assert tensorflow_setup.threads_per_site(fl_ctx) == threads


@pytest.mark.parametrize(("gpus", "flags", "policy"), [
    (["GPU:0"], "avx2", "mixed_float16"),
    ([], "flags\t\t: fpu avx512f avx512_bf16 fsrm\n", "mixed_bfloat16"),
    ([], "flags\t\t: fpu amx_bf16\n", "mixed_bfloat16"),
    ([], "flags\t\t: fpu avx512f avx512_bf160\nbugs\t: avx512_bf16\n", None), ([], None, None),
], ids=["GPU", "AVX512", "AMX", "neither", "not Linux"])  # fmt: skip
def test_half_precision_is_what_the_machine_gains_by(monkeypatch, tmp_path, gpus, flags, policy):
    import tensorflow as tf

    cpu = tmp_path / "cpuinfo"
    if flags is not None:
        cpu.write_text(f"processor\t: 0\n{flags}")
    monkeypatch.setattr(tensorflow_setup, "CPU_FACTS", cpu)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    assert tensorflow_setup.half_precision() == policy


def test_tensorflow_is_set_up_and_imported_without_what_no_site_needs():
    """A process that has imported it prints its setup, and packages that it has."""
    program = """
import sys
from surgical_aggregation.site.training import tensorflow_setup

tensorflow_setup.half_precision = lambda: "mixed_bfloat16"
mixed = tensorflow_setup.configure(1, 0, mixed_precision=True)
import keras
print(mixed, keras.config.dtype_policy().name)
from threadpoolctl import threadpool_info
print(*{each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})
print(*{"matplotlib", "pandas", "scipy", "sklearn"} & set(sys.modules))
import matplotlib.pyplot, pandas, scipy.stats, sklearn.linear_model
"""
    code = [sys.executable, "-c", program]
    found = subprocess.run(code, capture_output=True, text=True, check=True)
    # The threads are of NumPy's linear algebra.
    policy, threads, packages = found.stdout.splitlines()
    assert (policy, threads, packages) == ("True mixed_bfloat16", "1", "")


def test_packages_that_are_loaded_stay_so():
    with tensorflow_setup._without(["subprocess", "absent"]):
        assert sys.modules["subprocess"] is subprocess
        assert sys.modules["absent"] is None
    assert "absent" not in sys.modules
