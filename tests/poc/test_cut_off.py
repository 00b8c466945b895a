"""Runs whose server is killed after the last round; a job without rounds makes what is missing.

One in which the final model, which is the best, is being validated; and one in which the best model
is being tested and every site has a head and batch normalisation of its own.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import deployed
from faulty_run import SITES, FaultyRun, kill, together
from surgical_aggregation.checkpoint import load
from undisturbed import Undisturbed, same

pytestmark = [pytest.mark.poc, pytest.mark.keras]

ROUNDS = 2
RUNS = {
    "validated": {"num_rounds": ROUNDS},
    "personal": {"num_rounds": ROUNDS, "job": "personalised", "strategy": "fedbn"},
}
PLANS = {"validated": "south:validate:hold", "personal": "south:test:hold"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Each run, the same undisturbed, and the logs that the system's jobs left."""
    folder = tmp_path_factory.mktemp("cut_off")
    with deployed.poc_system(folder, SITES) as system, ThreadPoolExecutor() as pool:
        body = folder / "body.npz"
        twins = {
            name: pool.submit(Undisturbed(folder / f"twin-{name}", body, **knobs).run)
            for name, knobs in RUNS.items()
        }
        struck = [
            FaultyRun(
                system, folder / name, plan=[PLANS[name]],
                when={PLANS[name]: kill(system.server)}, **knobs,
            )
            for name, knobs in RUNS.items()
        ]  # fmt: skip
        done = dict(zip(RUNS, together(*struck), strict=True))
        logs = "".join(
            log.read_text()
            for place in system.places.values()
            for log in place.glob("*/log.txt")
        )  # fmt: skip
        logs += "".join(log.read_text() for log in folder.glob("*/results/*/*/workspace/log.txt"))
        yield SimpleNamespace(
            system=system, logs=logs, twins={n: t.result() for n, t in twins.items()}, **done
        )


@pytest.mark.parametrize("name", RUNS)
def test_no_round_is_made_twice(runs, name):
    cut_off, made_up = getattr(runs, name).parts
    assert list(cut_off.rounds) == [1, 2] and not made_up.rounds
    assert made_up.status == "FINISHED:COMPLETED"


@pytest.mark.parametrize("name", RUNS)
def test_the_models_are_the_undisturbed_runs(runs, name):
    for model in ("last", "best"):
        ours, theirs = getattr(runs, name).checkpoint(model), runs.twins[name].checkpoint(model)
        assert same(ours, theirs)
        assert ours.manifest["best"] == theirs.manifest["best"]


def test_the_final_model_is_judged_where_it_had_not_been(runs):
    assert runs.validated.checkpoint("best").manifest["best"]["round"] == ROUNDS


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("name", RUNS)
def test_every_site_measures_the_same(runs, name, site):
    server = getattr(runs, name).servers[-1]
    results = json.loads((server / "cross_site_val/cross_val_results.json").read_text())
    assert results[site] == runs.twins[name].measured()[site]
    assert results[site]["SRV_best"]


@pytest.mark.parametrize("site", SITES)
def test_every_site_has_its_own_best_model(runs, site):
    path = runs.system.kit(site) / "checkpoints" / runs.personal.newest / "site_best.npz"
    ours, theirs = load(path), runs.twins["personal"].own(site)
    assert same(ours, theirs)
    assert ours.manifest["round"] == theirs.manifest["round"]


def test_no_component_stumbles(runs):
    assert "validate: bce" in runs.logs  # the search reads what there is
    assert "Exception when handling event" not in runs.logs
