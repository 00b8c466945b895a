"""Sites with their own head and batch normalisation, in FLARE's simulator."""

import numpy as np
import pytest

from simulated import PERSONAL, TWO, undisturbed_run
from surgical_aggregation.wire import variables as wire

BODY = {"dense/kernel", "dense/bias"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return undisturbed_run(tmp_path_factory, "personal", **PERSONAL)


def test_neither_ever_leaves_a_site_and_the_body_is_averaged(run):
    sent = [[run.trained(site, round_).variables for site in TWO] for round_ in (0, 1)]
    assert all(set(variables) == BODY for of_round in sent for variables in of_round)
    assert wire.classes_of(run.last.variables) == ()
    for name in BODY:
        mean = np.mean([variables[name] for variables in sent[1]], axis=0)
        np.testing.assert_allclose(run.last.variables[name], mean, rtol=1e-6)
    assert run.events("best")


def test_no_file_of_the_server_names_a_class(run):
    """Except metrics per class, which a site reports to whoever aggregates."""
    for path in (run.server / "models").iterdir():
        for name in {name for site in TWO.values() for name in site["classes"]}:
            assert name.encode() not in path.read_bytes()


@pytest.mark.parametrize("which", ["last", "best"])
def test_each_site_has_its_own_whole_model(run, which):
    models = {site: run.own(site, which).variables for site in TWO}
    for site, model in models.items():
        assert wire.classes_of(model) == tuple(sorted(TWO[site]["classes"]))
        kernel = run.checkpoint(which).variables["dense/kernel"]
        np.testing.assert_array_equal(model["dense/kernel"], kernel)
    north, south = models.values()
    for name in ("head/Edema/kernel", "bn/moving_mean"):
        assert not np.array_equal(north[name], south[name])
