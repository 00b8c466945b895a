"""The project's own job folders on the tiny study: the same wiring, another site and body."""

import json
import re
from pathlib import Path

import numpy as np

from cxr_study.jobs import job_folder
from surgical_aggregation.aggregation.variable_kinds import VariableKinds
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, save
from tiny_site import FEATURES, INPUTS

JOBS = Path(__file__).parents[2] / "jobs"

_SITE = re.compile(
    r'path = "cxr_study\.training\.chest_xray_site\.ChestXraySite"\s+args \{(?:[^{}]|\{\w+\})*\}'
)


KERAS, NUMPY = "tiny_site.TinySite", "numpy_site.NumpySite"
"""What a site is: the tiny network in Keras, or in NumPy; see `numpy_site`."""


def make(folder, sites, *, job="surgical", settings=None, per_site=None, plan=(), site=NUMPY):
    """Copy a job for sites {name: {"classes", "images"}}; returns the job folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "sites.json"
    table.write_text(json.dumps(sites), encoding="utf-8")
    target = folder / "job"
    job_folder.copy(
        JOBS / job, target, sites=list(sites), settings=settings or {}, per_site=per_site
    )
    if plan:
        (folder / "results").mkdir()
    for client in target.glob("app_*/config/config_fed_client.conf"):
        text = _substitute(
            _SITE,
            f'path = "{site}", args {{ site = "{{SITE_NAME}}", table = "{table}" }}',
            client.read_text(),
        )
        if plan:
            misbehave = (
                f'{{ path = "misbehave.Misbehave", args {{ site = "{{SITE_NAME}}", '
                f'plan = {json.dumps(list(plan))}, folder = "{folder / "results"}" }} }}'
            )
            text = with_result_filters(text, misbehave)
        client.write_text(text)
    return target


def with_result_filters(text, *filters):
    """A client's configuration with further filters of what was trained, behind its own."""
    added = "".join(f"      {line}\n" for line in filters)
    if "task_result_filters = []" in text:  # every head stays at its site
        chain = f'[\n  {{ tasks = ["train"]\n    filters = [\n{added}    ] }}\n]'
        return text.replace("task_result_filters = []", f"task_result_filters = {chain}")
    return _substitute(r"(LabelHead\" \}\n)", lambda found: found[0] + added, text)


def _substitute(pattern, new, text):
    text, replaced = re.subn(pattern, new, text)
    assert replaced == 1
    return text


def initial_body(path):
    """Write the body that the tiny network starts from; returns the path. Needs no Keras."""
    rng = np.random.default_rng(7)
    body = {
        "dense/kernel": rng.uniform(-0.9, 0.9, (INPUTS, FEATURES)),
        "dense/bias": np.zeros(FEATURES),
        "bn/gamma": np.ones(FEATURES),
        "bn/beta": np.zeros(FEATURES),
        "bn/moving_mean": np.full(FEATURES, 0.1),
        "bn/moving_variance": np.full(FEATURES, 0.9),
    }
    batch_norm = frozenset(name for name in body if name.startswith("bn/"))
    body = {name: value.astype(np.float32) for name, value in body.items()}
    manifest = {"head_features": FEATURES, "initial_body_sha256": digest(body)}
    manifest |= VariableKinds(batch_norm).facts()
    save(Checkpoint(body, manifest), path)
    return path
