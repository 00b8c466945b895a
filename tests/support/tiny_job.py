"""The project's own job folders on the tiny study: the same wiring, another site and body."""

import json
import re
from pathlib import Path

from cxr_study import job_folder
from surgical_aggregation.checkpoint import Checkpoint, digest, save
from tiny_site import FEATURES

JOBS = Path(__file__).parents[2] / "jobs"

_SITE = re.compile(r'path = "cxr_study\.site\.ChestXraySite"\s+args \{(?:[^{}]|\{\w+\})*\}')


def make(folder, sites, *, job="surgical", settings=None, plan=()):
    """Copy a job for sites {name: {"classes", "images"}}; returns the job folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "sites.json"
    table.write_text(json.dumps(sites), encoding="utf-8")
    target = folder / "job"
    job_folder.copy(JOBS / job, target, sites=list(sites), settings=settings or {})
    client = target / job_folder.CLIENT_CONFIG
    text, replaced = _SITE.subn(
        f'path = "tiny_site.TinySite", args {{ site = "{{SITE_NAME}}", table = "{table}" }}',
        client.read_text(),
    )
    assert replaced == 1
    if plan:
        kept = folder / "results"
        kept.mkdir()
        misbehave = (
            f'{{ path = "misbehave.Misbehave", args {{ site = "{{SITE_NAME}}", '
            f'plan = {json.dumps(list(plan))}, folder = "{kept}" }} }}'
        )
        text, replaced = re.subn(r"(KeepAtSite\"\n.*\n)", rf"\1      {misbehave}\n", text)
        assert replaced == 1
    client.write_text(text)
    return target


def initial_body(path):
    """Write the body that the tiny network starts from; returns the path."""
    import keras

    from tiny_site import tiny_model

    keras.utils.set_random_seed(7)
    body = {v.path: v.numpy() for v in tiny_model(1).variables if not v.path.startswith("head/")}
    manifest = {"head_features": FEATURES, "initial_body_sha256": digest(body)}
    save(Checkpoint(body, manifest), path)
    return path
