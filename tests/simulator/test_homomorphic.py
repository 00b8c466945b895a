"""The encrypted job in FLARE's simulator, against the same run in the clear."""

import json

import numpy as np
import pytest

pytest.importorskip("tenseal", reason="homomorphic encryption needs TenSEAL: the extra 'he'")

import tenseal

import encrypted
import tiny_job
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.results import read_events
from cxr_study.runs.simulation import simulate
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.encryption.ciphertext import decrypted, is_packed
from tiny_run import KNOBS, SITES


@pytest.fixture(scope="module")
def run(tmp_path_factory, initial_body):
    return encrypted_run(tmp_path_factory.mktemp("encrypted"), SITES, initial_body)


def encrypted_run(folder, sites, initial_body, site=tiny_job.NUMPY, **settings):
    """Run the encrypted job; its workspace."""
    knobs = {**KNOBS, "tracking": "tensorboard", **settings}
    job = tiny_job.make(folder, sites, job="surgical_he", settings=knobs, site=site)
    encrypted.provision(folder / "workspace" / "startup")
    environment = {"CXR_INITIAL_BODY": str(initial_body)}
    simulate(job, folder / "workspace", list(sites), environment=environment)
    return folder / "workspace"


def model(run, name):
    return load(server_folder(run) / "models" / f"{name}.npz")


def test_opened_it_is_the_model_of_the_run_in_the_clear(run, runs):
    key = tenseal.context_from((run / "startup" / "client_context.tenseal").read_bytes())
    for name in ("best", "last"):
        opened, plain = decrypted(model(run, name), key), getattr(runs.first, name)
        assert opened.manifest["classes"] == plain.manifest["classes"]
        assert opened.variables.keys() == plain.variables.keys()
        for variable, value in plain.variables.items():
            np.testing.assert_allclose(opened.variables[variable], value, atol=1e-5)


def test_server_keeps_nothing_legible_of_what_sites_sent(run):
    variables = model(run, "last").variables
    legible = {name for name, value in variables.items() if not is_packed(value)}
    assert legible == {name for name in variables if name.startswith("bn/")}


def test_best_model_is_chosen_and_tested_as_in_the_clear(run, runs):
    def rounds(record):
        return [event["round"] for event in record if event["event"] == "best"]

    assert rounds(read_events(server_folder(run))) == rounds(runs.first.record)
    measured = json.loads(
        (server_folder(run) / "cross_site_val/cross_val_results.json").read_text()
    )
    plain = json.loads((runs.first.server / "cross_site_val/cross_val_results.json").read_text())
    for site in SITES:
        for one in ("SRV_best", "SRV_last"):
            assert measured[site][one]["bce"] == pytest.approx(plain[site][one]["bce"], abs=1e-5)


def test_a_site_that_trains_with_tensorflow_encrypts(tmp_path, initial_body):
    """TenSEAL after TensorFlow would end its process."""
    north = {"north": SITES["north"]}
    run = encrypted_run(
        tmp_path, north, initial_body, tiny_job.KERAS, num_rounds=1, min_clients=1, tracking="none"
    )
    assert is_packed(model(run, "last").variables["head/Edema/kernel"])
