"""FLARE's own result filters behind LabelHead, on weight differences."""

import numpy as np
import pytest

import tiny_job
from cxr_study.runs import job_results
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
            file = folder / f"job/app_{site}/config/config_fed_client.json"
            with tiny_job.edited(file) as client:
                tiny_job.add_result_filter(client, path, args)

    fixed = {**SETTINGS, "send": "differences", "num_rounds": 1, "min_clients": 1, **settings}
    own = {site: {"seed": 0} for site in filters}  # so each has an app of its own
    return run(folder, SITES, initial_body, per_site=own, before=add, **fixed)


def test_privacy_filters_limit_every_change_and_no_result_is_refused(tmp_path, initial_body, runs):
    percentile = (PERCENTILE, {"percentile": 10, "gamma": GAMMA})
    svt = (SVT, {"fraction": 0.9, "epsilon": 1e6, "noise_var": 10, "gamma": GAMMA})
    filters = {"north": percentile, "west": percentile, "south": svt}
    private = filtered(tmp_path, initial_body, filters)
    assert private.events("refused") == []
    names = {"north": PERCENTILE, "south": SVT, "west": PERCENTILE}
    noted = [f"{path.rpartition('.')[2]} ({site})" for site, path in names.items()]
    assert job_results.filters(private.server) == sorted(noted)
    start, last = load(initial_body).variables, private.last.variables
    assert list(wire.classes_of(last)) == UNION
    sites = {name: entry["sites"] for name, entry in private.last.manifest["classes"].items()}
    assert sites == {name: [s for s in SITES if name in SITES[s]["classes"]] for name in UNION}
    for name, value in start.items():  # batch normalisation is frozen
        assert (last[name].tobytes() == value.tobytes()) == name.startswith("bn/")

    most = 1.001 * GAMMA * max(site["images"] for site in SITES.values())
    without_noise = {*SITES["north"]["classes"], *SITES["west"]["classes"]}
    for name in without_noise - {*SITES["south"]["classes"]}:
        kernel, bias = (last[f"head/{name}/{part}"] for part in ("kernel", "bias"))
        assert 0 < np.abs(kernel).max() <= most and np.abs(bias).max() <= most
    unlimited = runs.first.last.variables
    assert np.abs(unlimited["dense/kernel"] - start["dense/kernel"]).max() > most
    assert np.abs(unlimited["head/Nodule/Mass/kernel"]).max() > most


def test_limits_on_changes_are_refused_by_name_where_whole_weights_are_sent(tmp_path, initial_body):
    limits = {"north": (PERCENTILE, {"gamma": 1e-5})}
    with pytest.raises(SimulationError, match="PercentilePrivacy of the job needs differences"):
        filtered(tmp_path, initial_body, limits, send="weights", min_clients=3)
    assert not (tmp_path / "workspace/server/simulate_job/models/last.npz").exists()


def test_noise_on_running_variances_is_refused_and_never_becomes_the_model(tmp_path, initial_body):
    noise = (SVT, {"fraction": 1.0, "noise_var": 0.001, "gamma": 1.0, "replace": False})
    loud, reason = Run(tmp_path), ""
    try:
        filtered(tmp_path, initial_body, dict.fromkeys(SITES, noise), strategy="fedavg")
    except SimulationError as error:  # nothing was left of the first round
        reason = str(error)
    assert loud.events("refused"), reason
    for event in loud.events("refused"):
        why = event["reason"]
        below = "'bn/moving_variance' has" in why
        assert ("use strategy 'fedbn' or 'fedbn+'" if below else "moved by more than") in why
    if (loud.server / "models/last.npz").is_file():
        assert (loud.last.variables["bn/moving_variance"] >= 0).all()
    else:
        assert "variances below 0" in reason or "moved by more than" in reason
