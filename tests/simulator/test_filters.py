"""FLARE's own result filters behind LabelHead, on weight differences."""

import numpy as np
import pytest

import tiny_job
from cxr_study.jobs import job_folder
from cxr_study.runs.simulator_process import SimulationError
from simulated import SETTINGS, SITES, UNION, Run, run
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire

PERCENTILE = "nvflare.app_common.filters.percentile_privacy.PercentilePrivacy"
SVT = "nvflare.app_common.filters.svt_privacy.SVTPrivacy"
GAMMA = 1e-5
"""Largest change per image that the filters let through."""


def filtered(folder, initial_body, filters, **settings):
    """Run a round in which sites have further filters {site: (path, arguments)}."""

    def add(folder):
        for site, (path, args) in filters.items():
            client = job_folder.client_config(folder / "job", f"app_{site}")
            tiny_job.add_result_filter(client, f'path = "{path}", args {{ {args} }}')

    fixed = {**SETTINGS, "send": "differences", "num_rounds": 1, "min_clients": 1, **settings}
    own = {site: {"seed": 0} for site in filters}  # so each has an app of its own
    return run(folder, SITES, initial_body, per_site=own, before=add, **fixed)


@pytest.fixture(scope="module")
def private(tmp_path_factory, initial_body):
    """Every site has a privacy filter of FLARE's."""
    percentile = (PERCENTILE, f"percentile = 10, gamma = {GAMMA}")
    svt = (SVT, f"fraction = 0.9, epsilon = 1e6, noise_var = 10, gamma = {GAMMA}")
    filters = {"north": percentile, "west": percentile, "south": svt}
    return filtered(tmp_path_factory.mktemp("private"), initial_body, filters)


def test_every_class_has_a_trained_column_and_no_result_is_refused(private, runs):
    assert private.events("refused") == []
    _, columns = wire.split(private.last.variables)
    assert list(columns) == UNION
    for name, (kernel, bias) in columns.items():
        assert (kernel.shape, bias.shape) == ((4,), (1,))
        assert kernel.any(), name
    sites, plain = (
        {name: entry["sites"] for name, entry in made.last.manifest["classes"].items()}
        for made in (private, runs.first)
    )
    assert sites == plain


def test_no_change_is_beyond_what_the_filters_let_through_and_without_them_changes_are(
    private, runs, initial_body
):
    start, most = load(initial_body).variables, GAMMA * max(s["images"] for s in SITES.values())
    for name, value in start.items():  # batch normalisation is frozen
        unchanged = private.last.variables[name].tobytes() == value.tobytes()
        assert unchanged == name.startswith("bn/")

    def change(checkpoint, name):
        return np.abs(checkpoint.variables[name] - start.get(name, 0)).max()

    without_noise = [name for site in ("north", "west") for name in SITES[site]["classes"]]
    for name in {*without_noise} - {*SITES["south"]["classes"]}:
        for part in ("kernel", "bias"):
            assert change(private.last, f"head/{name}/{part}") <= most * 1.001
    assert change(runs.first.last, "dense/kernel") > most
    assert change(runs.first.last, "head/Nodule/Mass/kernel") > most


def test_noise_on_running_variances_is_refused_and_never_becomes_the_model(tmp_path, initial_body):
    noise = (SVT, "fraction = 1.0, noise_var = 0.001, gamma = 1.0, replace = false")
    loud, reason = Run(tmp_path), ""
    try:
        filtered(tmp_path, initial_body, dict.fromkeys(SITES, noise), strategy="fedavg")
    except SimulationError as error:  # nothing was left of the first round
        reason = str(error)
    assert loud.events("refused"), reason
    for event in loud.events("refused"):
        assert "'bn/moving_variance' has" in event["reason"]
        assert "use strategy 'fedbn' or 'fedbn+'" in event["reason"]
    if (loud.server / "models/last.npz").is_file():
        assert (loud.last.variables["bn/moving_variance"] >= 0).all()
    else:
        assert "variances below 0" in reason
