"""Models made after training: the average of late rounds, and columns fitted anew."""

from types import SimpleNamespace

import numpy as np
import pytest

from cxr_study.runs.finished_run import checkpoint_folder
from numpy_model import ArraySite, LocalModel
from secrecy import names
from simulated import SITES, UNION, run, same
from surgical_aggregation.aggregation.averaging import mean_by_name
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire

DECAY, ROUNDS = 0.5, 4
SETTINGS = {"average_decay": DECAY, "strategy": "fedavg", "learning_rate": 0.05}
REFIT = {**SETTINGS, "refit_model": "best"}
STAGES = ("SRV_last", "SRV_average", "SRV_refit", "SRV_best")


@pytest.fixture(scope="module")
def made(tmp_path_factory, initial_body):
    """A run with both, and the same in two parts, of which the second makes the candidates."""
    folder = tmp_path_factory.mktemp("candidates")
    whole = run(folder / "whole", SITES, initial_body, num_rounds=ROUNDS, plan=(), **REFIT)
    half = run(folder / "half", SITES, initial_body, num_rounds=2, **SETTINGS)
    start = checkpoint_folder(half.workspace) / "last.npz"
    states = {site: checkpoint_folder(half.workspace, site) for site in SITES}
    rest = run(folder / "rest", SITES, start, states=states, num_rounds=ROUNDS - 2, **REFIT)
    return SimpleNamespace(whole=whole, rest=rest)


def test_the_average_is_the_mean_of_the_rounds_models_with_falling_weights(made):
    weights = [DECAY ** (ROUNDS - 1), *(DECAY**age for age in range(ROUNDS - 1, 0, -1))]
    models = [made.whole.after(number).variables for number in range(1, ROUNDS)]
    models.append(made.whole.last.variables)
    for name, value in made.whole.checkpoint("average").variables.items():
        mean = sum(weight * of[name] for weight, of in zip(weights, models, strict=True))
        np.testing.assert_allclose(value, mean, rtol=1e-5, atol=1e-6)


def test_every_column_is_the_mean_of_what_its_holders_fit_to_the_best_models_body(made, tmp_path):
    """Computed here again, from the sites' images."""
    refit = made.whole.checkpoint("refit")
    records = made.whole.events("best")
    before = [record for record in records if record.get("candidate") != "refit"][-1]
    start = made.whole.checkpoint("average" if "candidate" in before else "last")
    assert start.manifest["round"] == before["round"] == refit.manifest["round"]
    body, columns = wire.split(start.variables)
    fitted, penalties = [], []
    for name in SITES:
        site = ArraySite(name, str(made.whole.folder / "sites.json"))
        model = LocalModel(site.model(), site.classes, None)
        model.set_body(body)
        model.set_columns({c: columns[c] for c in site.classes})
        penalties.append(model.refit(site.data("train"), site.data("validation")))
        kernel, bias = (model.variables()[part] for part in ("head/kernel", "head/bias"))
        own = {c: (kernel[:, i], bias[i : i + 1]) for i, c in enumerate(site.classes)}
        fitted.append(wire.join({}, own))
    assert any(penalties)  # where images say nothing of labels, a site's columns stay
    means = mean_by_name(fitted, [dict.fromkeys(columns, 1.0) for columns in fitted])
    for name, value in refit.variables.items():
        expected = means.get(name, body.get(name))
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-4, err_msg=name)
    assert all(refit.variables[name].tobytes() == body[name].tobytes() for name in body)


def test_all_are_measured_and_the_best_of_them_is_tested(made):
    measured = made.whole.measured()
    assert all(set(STAGES) == set(measured[site]) for site in SITES)
    losses = {of: np.mean([measured[site][of]["bce"] for site in SITES]) for of in STAGES[:-1]}
    best = made.whole.events("best")[-1]
    assert best["value"] == pytest.approx(min(losses.values()))
    assert best["candidate"] == min(losses, key=losses.get).removeprefix("SRV_")
    assert same(made.whole.best, made.whole.checkpoint(best["candidate"]))
    assert list(wire.classes_of(made.whole.best.variables)) == UNION


def test_a_run_in_two_parts_ends_with_the_same_models_bit_for_bit(made):
    for name in ("last", "average", "refit", "best"):
        assert same(made.rest.checkpoint(name), made.whole.checkpoint(name)), name
    for name, value in made.whole.last.moments.items():
        assert value.tobytes() == made.rest.last.moments[name].tobytes()
    after = load(checkpoint_folder(made.rest.workspace) / "last.npz")
    assert "candidate" not in after.manifest and after.manifest["round"] == ROUNDS


@pytest.mark.parametrize("site", SITES)
def test_no_site_receives_the_name_of_a_class_that_it_does_not_label(made, site):
    received = made.whole.received(site)
    assert received.count(b"refit")
    found = {name for name in UNION if names(received, name)}
    assert found == set(SITES[site]["classes"])
