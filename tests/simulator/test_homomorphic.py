"""The encrypted job in FLARE's simulator, against the same run in the clear."""

import numpy as np
import pytest

pytest.importorskip("tenseal", reason="homomorphic encryption needs TenSEAL: the extra 'he'")

import tenseal

import encrypted
import tiny_job
from cxr_study.runs.simulator_process import SimulationError
from simulated import SETTINGS, SITES, TWO, run
from surgical_aggregation.encryption.ciphertext import decrypted, is_packed


def encrypted_run(folder, sites, initial_body, **settings):
    return run(
        folder, sites, initial_body, job="surgical_he",
        before=lambda folder: encrypted.provision(folder / "workspace/startup"),
        **{**SETTINGS, "tracking": "tensorboard", **settings},
    )  # fmt: skip


def test_it_ends_with_the_clear_runs_model_and_the_server_reads_none(tmp_path, initial_body, runs):
    hidden, clear = encrypted_run(tmp_path, SITES, initial_body), runs.first
    key = (hidden.workspace / "startup/client_context.tenseal").read_bytes()
    for name in ("best", "last"):
        opened = decrypted(hidden.checkpoint(name), tenseal.context_from(key))
        plain = clear.checkpoint(name)
        assert opened.manifest["classes"] == plain.manifest["classes"]
        assert opened.variables.keys() == plain.variables.keys()
        for variable, value in plain.variables.items():
            np.testing.assert_allclose(opened.variables[variable], value, atol=1e-5)
    variables = hidden.last.variables
    legible = {name for name, value in variables.items() if not is_packed(value)}
    assert legible == {name for name in variables if name.startswith("bn/")}

    chosen, plain = ([e["round"] for e in one.events("best")] for one in (hidden, clear))
    assert chosen == plain
    measured, plain = hidden.measured(), clear.measured()
    for site in SITES:
        for one in ("SRV_best", "SRV_last"):
            assert measured[site][one]["bce"] == pytest.approx(plain[site][one]["bce"], abs=1e-5)


def test_a_site_that_trains_with_tensorflow_encrypts(tmp_path, initial_body):
    """TenSEAL after TensorFlow would end its process."""
    made = encrypted_run(
        tmp_path, {"north": SITES["north"]}, initial_body, site=tiny_job.KERAS, num_rounds=1,
        min_clients=1, tracking="none",
    )  # fmt: skip
    assert is_packed(made.last.variables["head/Edema/kernel"])


def test_where_no_site_has_keys_the_run_ends_with_what_to_do(tmp_path, initial_body):
    def provision(folder):
        encrypted.provision(folder / "workspace/startup")
        (folder / "workspace/startup/client_context.tenseal").unlink()

    with pytest.raises(SimulationError) as error:
        run(tmp_path, TWO, initial_body, job="surgical_he", before=provision, **SETTINGS)
    reason = str(error.value).splitlines()[0]
    assert "north: homomorphic encryption needs client_context.tenseal in the startup" in reason
    assert "`nvflare poc prepare -he`" in reason
    logs = "".join(path.read_text() for path in (tmp_path / "workspace").rglob("log.txt"))
    assert "Traceback" not in logs
