"""The tiny study on a real FLARE system of this machine: services, certificates, admin."""

import json
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import tiny_job
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.deployment.site_kit import localise_server
from surgical_aggregation.checkpoints.checkpoint import load

PROJECT = Path(__file__).parents[2] / "poc" / "project.yml"


@contextmanager
def poc_system(folder, sites, *, permitted=None, **environment):
    """A running system of the tiny study's sites {name: {"classes", "images"}}; always stopped.

    Jobs of `tiny_job.make` run on it. The services get `environment`, and the tiny network's
    initial body; the server the classes that sites are permitted. A test may stop and start it.
    """
    body = folder / "body.npz"
    if not body.is_file():
        tiny_job.initial_body(body)
    system = PocSystem(folder / "poc")
    system.prepare(PROJECT, sites=list(sites))
    if permitted is not None:
        localise_server(system.server, folder / "storage", permitted=permitted, force=True)
    try:
        system.start({"CXR_INITIAL_BODY": str(body), **environment})
        yield system
    finally:
        system.stop()


def run(system, job, *, timeout=180.0):
    """Submit a job as the lead, wait for its end and download it; what it left."""
    with FlareSession(system.lead) as session:
        job_id = session.submit(job)
        meta = wait(session, job_id, timeout=timeout)
        return downloaded(session, system, job_id, meta)


def wait(session, job_id, *, until=lambda meta: False, timeout=180.0):
    """Wait until a job has ended, or `until(meta)`; returns its meta."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        meta = session.meta(job_id)
        if until(meta) or meta["status"].startswith("FINISHED"):
            return meta
        time.sleep(0.3)
    raise TimeoutError(f"job {job_id} is {meta['status']} after {timeout} s")


def rounds(system, job_id):
    """Number of whole rounds that a running job has made."""
    record = system.server / job_id / "run_record.jsonl"
    return record.read_text().count('"event": "round"') if record.is_file() else 0


def downloaded(session, system, job_id, meta):
    """Download a finished job; its status, folder, record, and models as far as there are any."""
    server = session.download(job_id, system.folder / "downloads") / "workspace"
    record = server / "run_record.jsonl"
    lines = record.read_text().splitlines() if record.is_file() else []
    models = {path.stem: load(path) for path in sorted((server / "models").glob("*.npz"))}
    return SimpleNamespace(
        job_id=job_id,
        meta=meta,
        status=meta["status"],
        server=server,
        record=[json.loads(line) for line in lines],
        last=models.get("last"),
        best=models.get("best"),
    )
