"""The runs that faults strike, without them, and how far another one is from these."""

import json
import shutil

import numpy as np

import faulty_job
import tiny_job
from cxr_study.runs.finished_run import checkpoint_folder, server_folder
from cxr_study.runs.simulation import simulate
from faulty_run import KNOBS, SITES
from once import once
from surgical_aggregation.checkpoints.checkpoint import load

PERSONAL = {"job": "personalised", "strategy": "fedbn", "num_rounds": 2}
"""Of the run in which every site has a head and batch normalisation of its own."""


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
        job = faulty_job.make(self.folder, SITES, job=self.job, settings=self.knobs)
        environment = {"CXR_INITIAL_BODY": str(self.initial_body)}
        simulate(job, self.folder / "workspace", list(SITES), environment=environment)
        return self

    def after(self, made):
        """The model after so many rounds."""
        return load(self.folder / "struck" / f"round-{made}.npz")

    def trained(self, site, round_):
        """What a site trained in a round."""
        return load(self.folder / "struck" / f"{site}-{round_}.npz")

    @property
    def server(self):
        """The server's folder of the job."""
        return server_folder(self.folder / "workspace")

    def checkpoint(self, name):
        """The last or best model."""
        return load(checkpoint_folder(self.folder / "workspace") / f"{name}.npz")

    def own(self, site, name="best"):
        """A site's own last or best model, where it has one."""
        return load(checkpoint_folder(self.folder / "workspace", site) / f"site_{name}.npz")

    def measured(self):
        """What the sites measured: site -> model -> metrics."""
        path = self.server / "cross_site_val" / "cross_val_results.json"
        return json.loads(path.read_text())


def undisturbed_run(tmp_path_factory, name, **knobs):
    """Such a run, made once, whichever worker asks first; see `once` and `Undisturbed`."""

    def run(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        Undisturbed(folder / "run", tiny_job.initial_body(folder / "body.npz"), **knobs).run()

    folder = once(tmp_path_factory, name, run)
    return Undisturbed(folder / "run", folder / "body.npz", **knobs)


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
