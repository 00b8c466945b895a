"""The tiny job with planned faults at its sites and its server."""

import json
import re

import lying
import tiny_job
from cxr_study.jobs import job_folder

_EXECUTOR = re.compile(r'path = "surgical_aggregation\.site\.executor\.KerasExecutor"\s+args \{')


def make(folder, sites, plan=(), *, job="surgical", struck=None, settings=None, claims=None):
    """Copy a job; what has struck once is remembered in a folder and strikes no more.

    Args:
        folder: For the job and its table of sites.
        sites: See `tiny_job.make`.
        plan: "place:round:what" items, see `faults` and `hostile`.
        job: Its name.
        struck: The folder; default: one of the job's own.
        settings: Knobs.
        claims: Which sites pass for others, see `lying.Impostor`.

    Returns:
        The job folder.
    """
    fragile = "fragile_site.FragileSite"
    job = tiny_job.make(folder, sites, job=job, settings=settings, site=fragile)
    struck = struck or folder / "struck"
    struck.mkdir(exist_ok=True, parents=True)
    rest = f'plan = {json.dumps(list(plan))}, folder = "{struck}"'
    at_site = f'site = "{{SITE_NAME}}", {rest}'
    keep = f'site = "{{SITE_NAME}}", folder = "{struck}"'
    client, server = job / job_folder.CLIENT_CONFIG, job / job_folder.SERVER_CONFIG
    _substitute(client, _EXECUTOR, f'path = "faults.FaultyExecutor", args {{ {at_site},')
    _substitute(
        client, rf'(path = "{fragile}", args \{{.*?) \}}', rf'\1, {rest}, epochs = "{{epochs}}" }}',
    )  # fmt: skip
    filters = (
        f'{{ path = "faults.KeepResults", args {{ {keep} }} }}',
        f'{{ path = "hostile.HostileResult", args {{ {at_site} }} }}',
    )
    text = tiny_job.with_result_filters(client.read_text(encoding="utf-8"), *filters)
    client.write_text(text, encoding="utf-8")
    if claims:
        _substitute(client, r"components = \[\n", f"components = [\n  {lying.impostor(claims)}\n")
    added = (
        f'  {{ id = "full_disk", path = "faults.FullDisk", args {{ {rest} }} }}\n'
        f'  {{ id = "keep_rounds", path = "faults.KeepRounds", args {{ folder = "{struck}" }} }}\n'
    )
    _substitute(server, r"components = \[\n", f"components = [\n{added}")
    return job


def _substitute(path, pattern, text):
    changed, number = re.subn(pattern, text, path.read_text(encoding="utf-8"))
    assert number == 1, (path, pattern)
    path.write_text(changed, encoding="utf-8")
