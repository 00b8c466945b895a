"""What tells the strategies and the personalised head apart, in FLARE's simulator."""

import numpy as np
import pytest

from cxr_study.runs.results import read_events
from faulty_run import SITES
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire
from tiny_run import run
from undisturbed import PERSONAL, undisturbed_run

KEEP_RESULTS = ["nobody:0:nan"]
BATCH_NORM = {f"bn/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance")}
BODY = {"dense/kernel", "dense/bias"}


@pytest.fixture(scope="module")
def strategies(tmp_path_factory, initial_body):
    """Two rounds of strategies."""
    folder = tmp_path_factory.mktemp("strategies")
    kept = {"plan": KEEP_RESULTS, "num_rounds": 2}
    return {
        name: run(folder / name, SITES, initial_body, strategy=name, **kept)
        for name in ("fedavg", "fedbn")
    }


@pytest.fixture(scope="module")
def personalised(tmp_path_factory):
    """Two rounds in which every site keeps its head."""
    return undisturbed_run(tmp_path_factory, "personal", **PERSONAL)


def results(run, round_=0):
    """What each site sent in a round, as it left its last filter."""
    return {s: load(run.folder / "results" / f"{s}-{round_}.npz").variables for s in SITES}


def site_models(run, which):
    folder = "checkpoints/simulate_job"
    return {s: load(run.workspace / s / folder / f"site_{which}.npz").variables for s in SITES}


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
        models = site_models(run, which)
        world = {"last": run.last, "best": run.best}[which].variables
        for site, model in models.items():
            assert wire.classes_of(model) == tuple(sorted(SITES[site]["classes"]))
            np.testing.assert_array_equal(model["dense/kernel"], world["dense/kernel"])
        north, south = models.values()
        assert not np.array_equal(north["bn/moving_mean"], south["bn/moving_mean"])


class TestPersonalisedHead:
    def test_it_never_leaves_a_site(self, personalised):
        for round_ in (0, 1):
            for site in SITES:
                assert set(personalised.trained(site, round_).variables) == BODY
        assert wire.classes_of(personalised.checkpoint("last").variables) == ()

    def test_the_body_is_averaged(self, personalised):
        sent = [personalised.trained(site, 1).variables["dense/kernel"] for site in SITES]
        last = personalised.checkpoint("last").variables["dense/kernel"]
        np.testing.assert_allclose(last, np.mean(sent, axis=0), rtol=1e-6)

    def test_no_file_of_the_server_names_a_class(self, personalised):
        """Metrics per class apart, which a site reports to whoever aggregates."""
        for path in (personalised.server / "models").iterdir():
            for name in {name for site in SITES.values() for name in site["classes"]}:
                assert name.encode() not in path.read_bytes()

    @pytest.mark.parametrize("which", ["last", "best"])
    def test_each_site_has_a_whole_model_of_its_own(self, personalised, which):
        models = {site: personalised.own(site, which).variables for site in SITES}
        for site, model in models.items():
            assert wire.classes_of(model) == tuple(sorted(SITES[site]["classes"]))
        edema = [models[site]["head/Edema/kernel"] for site in SITES]
        assert not np.array_equal(*edema)

    def test_the_best_model_is_found_and_tested(self, personalised):
        assert any(event["event"] == "best" for event in read_events(personalised.server))
