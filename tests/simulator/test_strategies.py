"""What tells the strategies and the personalised head apart, in FLARE's simulator."""

import numpy as np
import pytest

import tiny_run
from surgical_aggregation import wire
from surgical_aggregation.checkpoint import load
from tiny_run import run

SITES = {name: tiny_run.SITES[name] for name in ("north", "south")}

KEEP_RESULTS = ["nobody:0:nan"]
BATCH_NORM = {f"bn/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance")}
BODY = {"dense/kernel", "dense/bias"}


@pytest.fixture(scope="module")
def strategies(tmp_path_factory, initial_body):
    """Two rounds of every strategy and of a personalised head."""
    folder = tmp_path_factory.mktemp("strategies")
    wanted = {
        "fedavg": {"strategy": "fedavg"},
        "fedbn": {"strategy": "fedbn"},
        "personalised": {"job": "personalised", "strategy": "fedbn+"},
    }
    kept = {"plan": KEEP_RESULTS, "num_rounds": 2}
    return {
        name: run(folder / name, SITES, initial_body, **kept, **options)
        for name, options in wanted.items()
    }


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
    def test_it_never_leaves_a_site(self, strategies):
        for round_ in (0, 1):
            for sent in results(strategies["personalised"], round_).values():
                assert set(sent) == BODY
        assert wire.classes_of(strategies["personalised"].last.variables) == ()

    def test_the_body_is_averaged(self, strategies):
        sent = results(strategies["personalised"], 1).values()
        mean = np.mean([variables["dense/kernel"] for variables in sent], axis=0)
        last = strategies["personalised"].last.variables["dense/kernel"]
        np.testing.assert_allclose(last, mean, rtol=1e-6)

    def test_no_file_of_the_server_names_a_class(self, strategies):
        """Metrics per class apart, which a site reports to whoever aggregates."""
        run = strategies["personalised"]
        for path in (run.server / "models").iterdir():
            for name in {name for site in SITES.values() for name in site["classes"]}:
                assert name.encode() not in path.read_bytes()

    @pytest.mark.parametrize("which", ["last", "best"])
    def test_each_site_has_a_whole_model_of_its_own(self, strategies, which):
        models = site_models(strategies["personalised"], which)
        for site, model in models.items():
            assert wire.classes_of(model) == tuple(sorted(SITES[site]["classes"]))
        edema = [models[site]["head/Edema/kernel"] for site in SITES]
        assert not np.array_equal(*edema)

    def test_the_best_model_is_found_and_tested(self, strategies):
        assert any(event["event"] == "best" for event in strategies["personalised"].record)
