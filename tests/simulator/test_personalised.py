"""Sites with their own head and batch normalisation, in FLARE's simulator."""

import numpy as np

from simulated import PERSONAL, THREE, undisturbed_run
from surgical_aggregation.wire import variables as wire

BODY = {"dense/kernel", "dense/bias"}


def test_head_and_batch_normalisation_stay_at_their_site_and_the_body_is_averaged(tmp_path_factory):
    run = undisturbed_run(tmp_path_factory, "personal-three", THREE, **PERSONAL)
    sent = [[run.trained(site, round_).variables for site in THREE] for round_ in (0, 1)]
    assert all(set(variables) == BODY for of_round in sent for variables in of_round)
    assert wire.classes_of(run.last.variables) == ()
    for name in BODY:
        mean = np.mean([variables[name] for variables in sent[1]], axis=0)
        np.testing.assert_allclose(run.last.variables[name], mean, rtol=1e-6)
    assert run.events("best")
    for path in (run.server / "models").iterdir():  # its metrics name classes: sites report them
        for name in {name for site in THREE.values() for name in site["classes"]}:
            assert name.encode() not in path.read_bytes()

    for which in ("last", "best"):
        models = {site: run.own(site, which).variables for site in THREE}
        for site, model in models.items():
            assert wire.classes_of(model) == tuple(sorted(THREE[site]["classes"]))
            kernel = run.checkpoint(which).variables["dense/kernel"]
            np.testing.assert_array_equal(model["dense/kernel"], kernel)
        north, south, _ = models.values()
        for name in ("head/Edema/kernel", "bn/moving_mean"):
            assert not np.array_equal(north[name], south[name])
