"""The project's job folders with tiny sites: the same wiring, another site and body.

Where faults are planned, the job's parts are those of `faults`.
"""

import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, save
from tiny_site import FEATURES, INPUTS

JOBS = Path(__file__).parents[2] / "jobs"
KERAS, NUMPY = "tiny_site.TinySite", "numpy_site.NumpySite"
UNION_HEAD = "tiny_site.UnionHeadSite"
"""What a site is: the tiny network in Keras, or in NumPy; see `numpy_site`."""

FAULTS = ("FaultyServer", "FaultyExecutor", "FaultyResult", "Impostor")
CLASSES = (KERAS, NUMPY, UNION_HEAD, *(f"faults.{name}" for name in FAULTS))
"""Of a tiny job, besides those of the product."""


def make(
    folder, sites, *, job="surgical", settings=None, per_site=None, site=NUMPY, plan=None,
    claims=None, permitted=None, code="marked",
):  # fmt: skip
    """Write a job for sites {name: {"classes", "images"}}; returns the job folder.

    Args:
        folder: For the job, and its table of sites.
        sites: The sites.
        job: The job's name.
        settings: Settings.
        per_site: Site -> settings.
        site: Class of a site; with a plan `NUMPY`.
        plan: "who:round:what" items, see `faults`; what is kept, and marks of what has struck and
            strikes no more, are in <folder>/struck. None: nothing of that is in the job.
        claims: Which sites pass for others, see `faults.Impostor`.
        permitted: Site -> classes that it may train; None: what it declares.
        code: How the code gets to server and sites, see `CODE_MODES`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table, struck, target = folder / "sites.json", folder / "struck", folder / "job"
    table.write_text(json.dumps(sites), encoding="utf-8")
    asked = Job.of(job).with_settings(settings or {}, per_site, sites=list(sites))
    job_export.write(asked, target, code)
    here = {"site": "{SITE_NAME}"}
    of_site = {**here, "table": str(table)}
    faults = {"plan": list(plan or ()), "folder": str(struck)}
    with edited(target / "app_server/config/config_fed_server.json") as server:
        if plan is not None:
            struck.mkdir(parents=True, exist_ok=True)
            of_site |= {**faults, "epochs": "{epochs}"}
            server["components"].append(part("faults.FaultyServer", faults, id="faults"))
        filters = [*server["task_data_filters"], *server["task_result_filters"]]
        gates = [filter_ for entry in filters for filter_ in entry["filters"]]
        for gate in [*gates, server["workflows"][0]] if permitted is not None else ():
            gate.setdefault("args", {})["permitted"] = permitted
    for file in target.glob("app_*/config/config_fed_client.json"):
        with edited(file) as client:
            client["components"][0] = part(site, of_site, id="site")
            if plan is not None:
                executor = client["executors"][0]["executor"]
                executor["path"] = "faults.FaultyExecutor"
                executor["args"] |= {**here, **faults}
                add_result_filter(client, "faults.FaultyResult", {**here, **faults})
            if claims:
                false_claims = {**here, "claims": claims}
                client["components"].append(part("faults.Impostor", false_claims, id="impostor"))
    return target


@contextmanager
def edited(file):
    """What a configuration says, to be changed in a `with` block."""
    config = json.loads(file.read_text(encoding="utf-8"))
    yield config
    file.write_text(json.dumps(config), encoding="utf-8")


def part(path, args, **more):
    """A part of a configuration."""
    return {**more, "path": path, "args": args}


def add_result_filter(client, path, args):
    """Put a further filter of what was trained behind a client configuration's own."""
    chains = client["task_result_filters"]
    if not chains:  # heads stay at the site
        chains.append({"tasks": ["train"], "filters": []})
    chains[0]["filters"].append(part(path, args))


def initial_body(path):
    """Write the body that the tiny network starts from; returns the path. Needs no Keras."""
    kernel = np.random.default_rng(7).uniform(-0.9, 0.9, (INPUTS, FEATURES))
    batch_norm = {"bn/gamma": 1, "bn/beta": 0, "bn/moving_mean": 0.1, "bn/moving_variance": 0.9}
    vectors = {"dense/bias": 0, **batch_norm}
    body = {"dense/kernel": kernel, **{n: np.full(FEATURES, v) for n, v in vectors.items()}}
    body = {name: value.astype(np.float32) for name, value in body.items()}
    manifest = {"head_features": FEATURES, "initial_body_sha256": digest(body)}
    save(Checkpoint(body, manifest | VariableKinds(frozenset(batch_norm)).facts()), path)
    return path


def walk(value):
    """All dicts inside a configuration."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from walk(item)
