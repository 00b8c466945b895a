"""FLARE's own result filters behind LabelHead and KeepAtSite, on weight differences."""

import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import tiny_job
from cxr_study.job_folder import CLIENT_CONFIG
from cxr_study.run_events import read_events
from cxr_study.simulation import SimulationError, server_folder, simulate
from surgical_aggregation import wire
from surgical_aggregation.checkpoint import load
from tiny_run import SITES

pytestmark = [pytest.mark.simulator, pytest.mark.keras]

ROUNDS = 2
UNION = sorted({name for site in SITES.values() for name in site["classes"]})
PERCENTILE = "nvflare.app_common.filters.percentile_privacy.PercentilePrivacy"
SVT = "nvflare.app_common.filters.svt_privacy.SVTPrivacy"
EXCLUDE = "nvflare.app_common.filters.exclude_vars.ExcludeVars"
GAMMA = 1e-5
"""Largest change per image that the filters let out."""


def run(folder, initial_body, filters, *, keep_at_site=True, **settings):
    """Run the surgical job with further filters at every site; what it left."""
    settings = {"send": "differences", "num_rounds": ROUNDS, "min_clients": 1, **settings}
    job = tiny_job.make(folder, SITES, settings=settings)
    client = job / CLIENT_CONFIG
    added = "".join(f'      {{ path = "{path}", args {{ {args} }} }}\n' for path, args in filters)
    ours = r"( *\{ path = \S*KeepAtSite\"\n.*\n)"
    text, replaced = re.subn(ours, rf"\1{added}" if keep_at_site else added, client.read_text())
    assert replaced == 1
    client.write_text(text)
    workspace = folder / "workspace"
    reason = ""
    try:
        simulate(job, workspace, list(SITES), environment={"CXR_INITIAL_BODY": str(initial_body)})
    except SimulationError as error:
        reason = str(error)
    last = server_folder(workspace) / "models" / "last.npz"
    return SimpleNamespace(
        reason=reason,
        refused=[e for e in read_events(server_folder(workspace)) if e["event"] == "refused"],
        last=load(last) if last.is_file() else None,
    )


@pytest.fixture(scope="module")
def filtered(tmp_path_factory, initial_body):
    folder = tmp_path_factory.mktemp("filtered")
    percentile = (PERCENTILE, f"percentile = 10, gamma = {GAMMA}")
    svt = (SVT, f"fraction = 0.5, epsilon = 1e6, noise_var = 10, gamma = {GAMMA}")
    loud = (SVT, "fraction = 1.0, noise_var = 0.001, gamma = 1.0, replace = false")
    exclude = (EXCLUDE, r'exclude_vars = "^bn/"')
    with ThreadPoolExecutor() as pool:
        first = pool.submit(run, folder / "percentile", initial_body, [percentile])
        second = pool.submit(run, folder / "svt", initial_body, [exclude, svt], keep_at_site=False)
        third = pool.submit(run, folder / "loud", initial_body, [loud], strategy="fedavg")
        return SimpleNamespace(percentile=first.result(), svt=second.result(), loud=third.result())


@pytest.fixture(params=["percentile", "svt"])
def private(request, filtered):
    return getattr(filtered, request.param)


def test_no_result_is_refused(private):
    assert (private.reason, private.refused) == ("", [])


def test_every_class_has_a_column_with_news_in_it(private):
    _, columns = wire.split(private.last.variables)
    assert list(columns) == UNION
    for kernel, bias in columns.values():
        assert kernel.shape == (4,)
        assert bias.shape == (1,)
        assert kernel.any()


def test_manifest_says_who_taught_which_class(private, runs):
    taught = {name: entry["sites"] for name, entry in private.last.manifest["classes"].items()}
    plain = runs.first.last.manifest["classes"]
    assert taught == {name: entry["sites"] for name, entry in plain.items()}


def test_frozen_batch_normalisation_is_the_initial_bodys_to_the_last_bit(private, initial_body):
    start = load(initial_body).variables
    for name, value in start.items():
        same = private.last.variables[name].tobytes() == value.tobytes()
        assert same == name.startswith("bn/")


def test_the_filter_was_at_work(filtered, runs, initial_body):
    """No change is beyond what the filter lets out; without the filter, changes are."""
    start, most = load(initial_body).variables, GAMMA * max(s["images"] for s in SITES.values())

    def change(checkpoint, name):
        return np.abs(checkpoint.variables[name] - start.get(name, 0)).max()

    for name in filtered.percentile.last.variables:
        if not name.startswith("bn/"):
            assert change(filtered.percentile.last, name) <= ROUNDS * most * 1.001
    assert change(runs.first.last, "dense/kernel") > ROUNDS * most
    assert change(runs.first.last, "head/Edema/kernel") > ROUNDS * most


def test_noise_on_running_variances_is_refused_and_never_becomes_the_model(filtered):
    loud = filtered.loud
    assert loud.refused
    for event in loud.refused:
        assert "'bn/moving_variance' has" in event["reason"]
        assert "use strategy 'fedbn' or 'fedbn+'" in event["reason"]
    if loud.last is None:  # nothing was left of the first round
        assert "variances below 0" in loud.reason
    else:
        assert (loud.last.variables["bn/moving_variance"] >= 0).all()
