"""What tells the strategies and the personalised head apart, in FLARE's simulator."""

import numpy as np
import pytest

from simulated import PERSONAL, TWO, run, undisturbed_run
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire

BATCH_NORM = {f"bn/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance")}
BODY = {"dense/kernel", "dense/bias"}
MODELS = ("last", "best")


@pytest.fixture(scope="module")
def strategies(tmp_path_factory, initial_body):
    """Two rounds of each."""
    folder = tmp_path_factory.mktemp("strategies")
    return {
        name: run(folder / name, TWO, initial_body, strategy=name, plan=(), num_rounds=2)
        for name in ("fedavg", "fedbn")
    } | {"personalised": undisturbed_run(tmp_path_factory, "personal", **PERSONAL)}


def sent(run, round_):
    """What each site sent in a round, as it left its last filter."""
    return [run.trained(site, round_).variables for site in TWO]


def own_models(run, which):
    """Each site's own model, by site; it has the classes that the site labels."""
    models = {site: run.own(site, which).variables for site in TWO}
    for site, model in models.items():
        assert wire.classes_of(model) == tuple(sorted(TWO[site]["classes"]))
    return models


def test_fedavg_averages_batch_normalisation_with_everything_else(strategies):
    results, last = sent(strategies["fedavg"], 1), strategies["fedavg"].last.variables
    for name in BATCH_NORM | BODY:
        mean = np.mean([variables[name] for variables in results], axis=0)
        np.testing.assert_allclose(last[name], mean, rtol=1e-6)
        assert not all(np.array_equal(last[name], variables[name]) for variables in results)


def test_with_fedbn_batch_normalisation_never_leaves_a_site(strategies, initial_body):
    fedbn, start = strategies["fedbn"], load(initial_body).variables
    for variables in [*sent(fedbn, 0), *sent(fedbn, 1)]:
        assert BATCH_NORM.isdisjoint(variables)
        assert set(variables) >= BODY
    for name in BATCH_NORM:
        assert fedbn.last.variables[name].tobytes() == start[name].tobytes()


@pytest.mark.parametrize("which", MODELS)
def test_with_fedbn_each_site_has_a_model_with_its_own_batch_normalisation(strategies, which):
    models = own_models(strategies["fedbn"], which)
    kernel = strategies["fedbn"].checkpoint(which).variables["dense/kernel"]
    for model in models.values():
        np.testing.assert_array_equal(model["dense/kernel"], kernel)
    north, south = models.values()
    assert not np.array_equal(north["bn/moving_mean"], south["bn/moving_mean"])


def test_a_personalised_head_never_leaves_a_site_and_the_body_is_averaged(strategies):
    run = strategies["personalised"]
    assert all(set(variables) == BODY for round_ in (0, 1) for variables in sent(run, round_))
    last = run.last.variables
    assert wire.classes_of(last) == ()
    mean = np.mean([variables["dense/kernel"] for variables in sent(run, 1)], axis=0)
    np.testing.assert_allclose(last["dense/kernel"], mean, rtol=1e-6)
    assert run.events("best")


def test_with_personalised_heads_no_file_of_the_server_names_a_class(strategies):
    """Except metrics per class, which a site reports to whoever aggregates."""
    for path in (strategies["personalised"].server / "models").iterdir():
        for name in {name for site in TWO.values() for name in site["classes"]}:
            assert name.encode() not in path.read_bytes()


@pytest.mark.parametrize("which", MODELS)
def test_with_personalised_heads_each_site_has_its_own_whole_model(strategies, which):
    north, south = own_models(strategies["personalised"], which).values()
    assert not np.array_equal(north["head/Edema/kernel"], south["head/Edema/kernel"])
