"""Runs of the tiny study in FLARE's real simulator."""

from types import SimpleNamespace

import tiny_job
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.results import read_events
from cxr_study.runs.simulation import simulate
from surgical_aggregation.checkpoints.checkpoint import load

SITES = {
    "north": {"classes": ["Edema", "Nodule/Mass", "Pleural Effusion"], "images": 40},
    "south": {"classes": ["Épanchement", "Edema", "Fracture"], "images": 24},
    "west": {"classes": ["Fracture", "Support Devices"], "images": 16},
}

KNOBS = {"num_rounds": 3, "warmup_epochs": 1, "learning_rate": 0.05, "tracking": "none"}
"""Of the run that others are compared with."""


def run(
    folder, sites, initial_body, *, job="surgical", capture=False, plan=(), states=None,
    site=tiny_job.NUMPY, **settings,
):  # fmt: skip
    """Run a job on the tiny study, untracked unless asked for; what it left."""
    settings = {"tracking": "none", "warmup_epochs": 1, **settings}
    job = tiny_job.make(folder, sites, job=job, settings=settings, plan=plan, site=site)
    environment = {"CXR_INITIAL_BODY": str(initial_body)}
    if capture:
        (folder / "received").mkdir()
        environment["CAPTURE_FOLDER"] = str(folder / "received")
    workspace = folder / "workspace"
    simulate(job, workspace, list(sites), environment=environment, states=states)
    models = server_folder(workspace) / "models"
    return SimpleNamespace(
        folder=folder,
        workspace=workspace,
        server=server_folder(workspace),
        record=read_events(server_folder(workspace)),
        last=load(models / "last.npz"),
        best=load(models / "best.npz"),
    )
