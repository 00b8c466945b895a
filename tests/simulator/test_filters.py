"""FLARE's own result filters behind LabelHead, on weight differences."""

from types import SimpleNamespace

import numpy as np
import pytest

import tiny_job
from cxr_study.jobs import job_folder
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.results import read_events
from cxr_study.runs.simulation import SimulationError, simulate
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire
from tiny_run import KNOBS, SITES

ROUNDS = 1
UNION = sorted({name for site in SITES.values() for name in site["classes"]})
PERCENTILE = "nvflare.app_common.filters.percentile_privacy.PercentilePrivacy"
SVT = "nvflare.app_common.filters.svt_privacy.SVTPrivacy"
GAMMA = 1e-5
"""Largest change per image that the filters let out."""


def run(folder, initial_body, filters, **settings):
    """Run the surgical job with further filters at some sites; what it left.

    Args:
        filters: Site -> path and arguments of what stands there behind LabelHead.
    """
    fixed = {**KNOBS, "send": "differences", "num_rounds": ROUNDS, "min_clients": 1}
    own = {site: {"seed": 0} for site in filters}  # so each has an app of its own
    job = tiny_job.make(folder, SITES, settings={**fixed, **settings}, per_site=own)
    for site, (path, args) in filters.items():
        client = job_folder.client_config(job, f"app_{site}")
        added = f'{{ path = "{path}", args {{ {args} }} }}'
        client.write_text(tiny_job.with_result_filters(client.read_text(), added))
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
def private(tmp_path_factory, initial_body):
    """Every site has a privacy filter of FLARE's."""
    percentile = (PERCENTILE, f"percentile = 10, gamma = {GAMMA}")
    svt = (SVT, f"fraction = 0.9, epsilon = 1e6, noise_var = 10, gamma = {GAMMA}")
    filters = {"north": percentile, "west": percentile, "south": svt}
    return run(tmp_path_factory.mktemp("private"), initial_body, filters)


@pytest.fixture(scope="module")
def loud(tmp_path_factory, initial_body):
    """Noise on all that leaves a site, batch normalisation among it."""
    noise = (SVT, "fraction = 1.0, noise_var = 0.001, gamma = 1.0, replace = false")
    return run(
        tmp_path_factory.mktemp("loud"), initial_body, dict.fromkeys(SITES, noise),
        strategy="fedavg",
    )  # fmt: skip


def test_no_result_is_refused(private):
    assert (private.reason, private.refused) == ("", [])


def test_every_class_has_a_column_with_news_in_it(private):
    _, columns = wire.split(private.last.variables)
    assert list(columns) == UNION
    for name, (kernel, bias) in columns.items():
        assert kernel.shape == (4,)
        assert bias.shape == (1,)
        assert kernel.any(), name


def test_manifest_says_who_taught_which_class(private, runs):
    taught = {name: entry["sites"] for name, entry in private.last.manifest["classes"].items()}
    plain = runs.first.last.manifest["classes"]
    assert taught == {name: entry["sites"] for name, entry in plain.items()}


def test_frozen_batch_normalisation_is_the_initial_bodys_to_the_last_bit(private, initial_body):
    start = load(initial_body).variables
    for name, value in start.items():
        same = private.last.variables[name].tobytes() == value.tobytes()
        assert same == name.startswith("bn/")


def test_the_filter_was_at_work(private, runs, initial_body):
    """No change is beyond what the filter lets out; without the filter, changes are."""
    start, most = load(initial_body).variables, GAMMA * max(s["images"] for s in SITES.values())

    def change(checkpoint, name):
        return np.abs(checkpoint.variables[name] - start.get(name, 0)).max()

    without_noise = [name for site in ("north", "west") for name in SITES[site]["classes"]]
    for name in {*without_noise} - {*SITES["south"]["classes"]}:
        for part in ("kernel", "bias"):
            assert change(private.last, f"head/{name}/{part}") <= ROUNDS * most * 1.001
    assert change(runs.first.last, "dense/kernel") > ROUNDS * most
    assert change(runs.first.last, "head/Nodule/Mass/kernel") > ROUNDS * most


def test_noise_on_running_variances_is_refused_and_never_becomes_the_model(loud):
    assert loud.refused, loud.reason
    for event in loud.refused:
        assert "'bn/moving_variance' has" in event["reason"]
        assert "use strategy 'fedbn' or 'fedbn+'" in event["reason"]
    if loud.last is None:  # nothing was left of the first round
        assert "variances below 0" in loud.reason
    else:
        assert (loud.last.variables["bn/moving_variance"] >= 0).all()
