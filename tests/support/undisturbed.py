"""The run that faults strike, without them, and how far another one is from it."""

import json
import shutil

import numpy as np

import faulty_job
from cxr_study.simulation import LostSiteError, simulate
from cxr_study.simulator_folders import checkpoint_folder, server_folder
from faulty_run import KNOBS, SITES
from surgical_aggregation.checkpoint import load


class Undisturbed:
    """The same run without faults, in FLARE's simulator.

    Args:
        folder: New folder.
        initial_body: Checkpoint to start from.
        job: Its name. Default "surgical".
        knobs: Of the job, beside `KNOBS`.
    """

    def __init__(self, folder, initial_body, job="surgical", **knobs):
        self.folder = folder
        self.initial_body = initial_body
        self.job = job
        self.knobs = {**KNOBS, **knobs}

    def run(self):
        """Run it; returns itself."""
        try:
            self._simulate()
        except LostSiteError:  # FLARE loses a connection now and then
            shutil.rmtree(self.folder)
            self._simulate()
        return self

    def _simulate(self):
        job = faulty_job.make(self.folder, SITES, job=self.job, settings=self.knobs)
        environment = {"CXR_INITIAL_BODY": str(self.initial_body)}
        simulate(job, self.folder / "workspace", list(SITES), environment=environment)

    def after(self, made):
        """The model after so many rounds."""
        return load(self.folder / "struck" / f"round-{made}.npz")

    def checkpoint(self, name):
        """The last or best model."""
        return load(checkpoint_folder(self.folder / "workspace") / f"{name}.npz")

    def own(self, site):
        """A site's own best model, where it has one."""
        return load(checkpoint_folder(self.folder / "workspace", site) / "site_best.npz")

    def measured(self):
        """What the sites measured: site -> model -> metrics."""
        server = server_folder(self.folder / "workspace")
        return json.loads((server / "cross_site_val" / "cross_val_results.json").read_text())


def same(one, other):
    """Whether two models are equal to the last bit."""
    return one.variables.keys() == other.variables.keys() and all(
        value.tobytes() == other.variables[name].tobytes() for name, value in one.variables.items()
    )


def distance(one, other):
    """Relative L2 distance of two models' common variables."""
    names = one.variables.keys() & other.variables.keys()
    ours, theirs = (
        np.concatenate([model.variables[name].ravel() for name in sorted(names)])
        for model in (one, other)
    )
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))
