"""What tells the strategies and the personalised head apart, in FLARE's simulator."""

import numpy as np
import pytest

from simulated import PERSONAL, TWO, run, undisturbed_run
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire

BATCH_NORM = {f"bn/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance")}
BODY = {"dense/kernel", "dense/bias"}


@pytest.fixture(scope="module")
def strategies(tmp_path_factory, initial_body):
    """Two rounds of strategies."""
    folder = tmp_path_factory.mktemp("strategies")
    return {
        name: run(folder / name, TWO, initial_body, strategy=name, plan=(), num_rounds=2)
        for name in ("fedavg", "fedbn")
    }


@pytest.fixture(scope="module")
def personalised(tmp_path_factory):
    """Two rounds in which every site keeps its head."""
    return undisturbed_run(tmp_path_factory, "personal", **PERSONAL)


def results(run, round_=0):
    """What each site sent in a round, as it left its last filter."""
    return {site: run.trained(site, round_).variables for site in TWO}


class TestFedAvg:
    def test_batch_normalisation_is_averaged_with_everything_else(self, strategies):
        sent = results(strategies["fedavg"], 1).values()
        last = strategies["fedavg"].last.variables
        for name in BATCH_NORM | BODY:
            mean = np.mean([variables[name] for variables in sent], axis=0)
            np.testing.assert_allclose(last[name], mean, rtol=1e-6)
            assert not all(np.array_equal(last[name], variables[name]) for variables in sent)


class TestFedBN:
    def test_batch_normalisation_never_leaves_a_site(self, strategies, initial_body):
        for round_ in (0, 1):
            for sent in results(strategies["fedbn"], round_).values():
                assert BATCH_NORM.isdisjoint(sent)
                assert set(sent) >= BODY
        last, start = strategies["fedbn"].last.variables, load(initial_body).variables
        for name in BATCH_NORM:
            assert last[name].tobytes() == start[name].tobytes()

    @pytest.mark.parametrize("which", ["last", "best"])
    def test_each_site_has_a_model_with_its_own_batch_normalisation(self, strategies, which):
        run = strategies["fedbn"]
        models = {site: run.own(site, which).variables for site in TWO}
        world = run.checkpoint(which).variables
        for site, model in models.items():
            assert wire.classes_of(model) == tuple(sorted(TWO[site]["classes"]))
            np.testing.assert_array_equal(model["dense/kernel"], world["dense/kernel"])
        north, south = models.values()
        assert not np.array_equal(north["bn/moving_mean"], south["bn/moving_mean"])


class TestPersonalisedHead:
    def test_it_never_leaves_a_site(self, personalised):
        for round_ in (0, 1):
            for site in TWO:
                assert set(personalised.trained(site, round_).variables) == BODY
        assert wire.classes_of(personalised.last.variables) == ()

    def test_the_body_is_averaged(self, personalised):
        sent = [personalised.trained(site, 1).variables["dense/kernel"] for site in TWO]
        last = personalised.last.variables["dense/kernel"]
        np.testing.assert_allclose(last, np.mean(sent, axis=0), rtol=1e-6)

    def test_no_file_of_the_server_names_a_class(self, personalised):
        """Metrics per class apart, which a site reports to whoever aggregates."""
        for path in (personalised.server / "models").iterdir():
            for name in {name for site in TWO.values() for name in site["classes"]}:
                assert name.encode() not in path.read_bytes()

    @pytest.mark.parametrize("which", ["last", "best"])
    def test_each_site_has_a_whole_model_of_its_own(self, personalised, which):
        models = {site: personalised.own(site, which).variables for site in TWO}
        for site, model in models.items():
            assert wire.classes_of(model) == tuple(sorted(TWO[site]["classes"]))
        edema = [models[site]["head/Edema/kernel"] for site in TWO]
        assert not np.array_equal(*edema)

    def test_the_best_model_is_found_and_tested(self, personalised):
        assert personalised.events("best")
