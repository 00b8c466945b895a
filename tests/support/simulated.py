"""Runs of the tiny job in FLARE's real simulator, and what they left."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np
import psutil

import tiny_job
from cxr_study.runs.finished_run import checkpoint_folder, server_folder
from cxr_study.runs.job_results import json_lines, read_events
from cxr_study.runs.simulator_process import simulate
from once import once
from surgical_aggregation.checkpoints.checkpoint import load

RECIPES = Path(__file__).with_name("recipes.py")
SITES = {
    "north": {"classes": ["Edema", "Nodule/Mass", "Pleural Effusion"], "images": 40},
    "south": {"classes": ["Épanchement", "Edema", "Fracture"], "images": 24},
    "west": {"classes": ["Fracture", "Support Devices"], "images": 16},
}
UNION = sorted({name for site in SITES.values() for name in site["classes"]})
SETTINGS = {"num_rounds": 3, "warmup_epochs": 1, "learning_rate": 0.05, "tracking": "none"}
"""Of the run that others are compared with."""

TWO = {
    "north": {"classes": ["Edema", "Nodule/Mass"], "images": 24},
    "south": {"classes": ["Edema", "Fracture"], "images": 16},
}
THREE = {**TWO, "west": {"classes": ["Edema"], "images": 8}}
"""Sites of the runs that faults strike, and of the same undisturbed."""

UNDISTURBED = {
    "num_rounds": 5, "epochs": 2, "learning_rate": 0.01, "warmup_epochs": 2, "threads": 1,
    "wait_seconds": 60, "tracking": "none",
}  # fmt: skip
"""Settings of these."""

PERSONAL = {"job": "personalised", "strategy": "fedbn", "num_rounds": 2}
"""Of the one in which every site has its own head and batch normalisation."""


class Run:
    """What a run left in its folder."""

    def __init__(self, folder):
        self.folder = folder
        self.workspace = folder / "workspace"
        self.server = server_folder(self.workspace)

    @cached_property
    def record(self):
        """The server's events."""
        return read_events(self.server)

    def events(self, kind):
        return [event for event in self.record if event["event"] == kind]

    def refused(self, site):
        own = [event for event in self.events("refused") if event["site"] == site]
        return {(event["task"], event["round"]): event["reason"] for event in own}

    @property
    def last(self):
        return self.checkpoint("last")

    @property
    def best(self):
        return self.checkpoint("best")

    def checkpoint(self, name):
        return load(self.server / f"models/{name}.npz")

    def own(self, site, name="best"):
        """A site's whole model, last or best, where its head is its own."""
        return load(checkpoint_folder(self.workspace, site) / f"site_{name}.npz")

    def after(self, made):
        """The model after so many rounds, where there was a plan of faults."""
        return load(self.folder / "struck" / f"round-{made}.npz")

    def trained(self, site, round_):
        """What a site trained in a round, likewise."""
        return load(self.folder / "struck" / f"{site}-{round_}.npz")

    def measured(self):
        """What the sites measured: site -> model -> metrics."""
        return json.loads((self.server / "cross_site_val/cross_val_results.json").read_text())

    def round_metrics(self):
        """What FLARE keeps of the rounds: round -> site -> metric -> value."""
        found = {}
        for line in json_lines(self.server / "metrics/round_metrics.jsonl"):
            found[line["round"]] = {
                site["name"]: {metric["name"]: metric["value"] for metric in site["metrics"]}
                for site in line["sites"]
            }
        return found

    def received(self, site):
        return (self.folder / "received" / site).read_bytes()

    def files(self, site):
        """Path -> content, of a site's folder."""
        found = (self.workspace / site).rglob("*")
        return {path: path.read_bytes() for path in found if path.is_file()}

    def log(self, party):
        return (self.workspace / party / "log.txt").read_text(encoding="utf-8")


def run(
    folder, sites, initial_body, *, job="surgical", states=None, before=None, site=tiny_job.NUMPY,
    plan=None, claims=None, permitted=None, per_site=None, **settings,
):  # fmt: skip
    """Run a training job to its end, untracked unless asked for; what it left.

    `sites`, `job`, `site` and what follows it: see `tiny_job.make`; `states`: see `simulate`;
    `before`: called with the run's folder when the job is in it.
    """
    made = tiny_job.make(
        folder, sites, job=job, settings={"tracking": "none", "warmup_epochs": 1, **settings},
        per_site=per_site, site=site, plan=plan, claims=claims, permitted=permitted,
    )  # fmt: skip
    received = folder / "received"
    received.mkdir()
    environment = {"CXR_INITIAL_BODY": str(initial_body), "CAPTURE_FOLDER": str(received)}
    if before:
        before(folder)
    simulate(made, folder / "workspace", environment=environment, states=states or {})
    return Run(folder)


def by_recipe(where, folder, sites, settings, **environment):
    """What `recipes.py` finds when it has run the recipe, in its own process."""
    table, body = folder / "sites.json", tiny_job.initial_body(folder / "body.npz")
    table.write_text(json.dumps(sites))
    done = subprocess.run(
        [sys.executable, RECIPES, where, folder, table, body, json.dumps(settings)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=480, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


def undisturbed_run(tmp_path_factory, name, sites=TWO, **settings):
    """The run without faults."""

    def make(folder):
        body = tiny_job.initial_body(folder / "body.npz")
        run(folder / "run", sites, body, plan=(), **{**UNDISTURBED, **settings})

    return Run(once(tmp_path_factory, name, make) / "run")


def plain(job, folder, sites, **variables):
    """FLARE's simulator as a user starts it, for jobs that train nothing; always stopped.

    What the sites receive is captured.
    """
    environment = {**os.environ, "CAPTURE_FOLDER": str(folder / "received"), **variables}
    log, workspace = folder / "workspace.log", folder / "workspace"
    command = [
        sys.executable, "-m", "nvflare.private.fed.app.simulator.simulator", str(job),
        "-w", str(workspace), "-c", ",".join(sites), "-t", str(len(sites)),
    ]  # fmt: skip
    for _ in range(3):  # FLARE's races: a port taken meanwhile, a process with another site's name
        for left in workspace, folder / "received":
            shutil.rmtree(left, ignore_errors=True)
        (folder / "received").mkdir(parents=True)
        with log.open("w") as output:
            to = {"stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(command, env=environment, **to)
        with suppress(subprocess.TimeoutExpired):
            process.wait(300)
        for member in processes(workspace):
            with suppress(psutil.NoSuchProcess):
                member.kill()
        if process.wait() == 0 and "it calls itself" not in log.read_text():
            return Run(folder)
    raise AssertionError(log.read_text())


def processes(folder):
    """Processes of FLARE's simulator that work in a folder."""
    found = psutil.process_iter(["cmdline"])
    return [p for p in found if any(str(folder) in word for word in p.info["cmdline"] or ())]


def same(one, other):
    """Whether two models are equal to the last bit."""
    return one.variables.keys() == other.variables.keys() and all(
        value.tobytes() == other.variables[name].tobytes() for name, value in one.variables.items()
    )


def distance(one, other):
    """Relative L2 distance of two models' common variables."""
    names = sorted(one.variables.keys() & other.variables.keys())
    ours, theirs = (np.concatenate([of.variables[n].ravel() for n in names]) for of in (one, other))
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))
