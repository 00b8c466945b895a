"""Imports what sites need in FLARE's simulator: loaded once, for all sites; see `forked_site`."""

from importlib import import_module

from surgical_aggregation.site.training import tensorflow_setup

tensorflow_setup.import_alone()
for _module in (
    "cxr_study.training.chest_xray_site",
    "cxr_study.training.input_pipeline",
    "cxr_study.training.network",
    "nvflare.private.fed.app.simulator.simulator_runner",
    "nvflare.private.fed.app.simulator.simulator_worker",
    "surgical_aggregation.site.executor",
    "surgical_aggregation.site.training.trainer",
):
    import_module(_module)
