"""The project's own job folders on the tiny study: the same wiring, another site and body.

Where faults are planned, the job's parts are those of `faults`.
"""

import json
import re
from pathlib import Path

import numpy as np

from cxr_study.jobs import job_folder
from surgical_aggregation.aggregation.variable_kinds import VariableKinds
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, save
from tiny_site import FEATURES, INPUTS

JOBS = Path(__file__).parents[2] / "jobs"
KERAS, NUMPY = "tiny_site.TinySite", "numpy_site.NumpySite"
"""What a site is: the tiny network in Keras, or in NumPy; see `numpy_site`."""

_SITE = r'path = "[\w.]+\.ChestXraySite"\s+args \{(?:[^{}]|\{\w+\})*\}'
_EXECUTOR = r'path = "[\w.]+\.KerasExecutor"\s+args \{'
_CLASS_FILTERS = r'path = "([\w.]+\.(?:SelectHead|CheckResult))"'
_COMPONENTS = r"components = \[\n"


def make(
    folder, sites, *, job="surgical", settings=None, per_site=None, site=NUMPY, plan=None,
    claims=None, permitted=None,
):  # fmt: skip
    """Copy a job for sites {name: {"classes", "images"}}.

    Args:
        folder: For the job, and its table of sites.
        sites: The sites.
        job: The job's name, or a folder.
        settings: Settings.
        per_site: Site -> settings.
        site: Class of a site; with a plan `NUMPY`.
        plan: "who:round:what" items, see `faults`; what is kept, and marks of what has struck and
            strikes no more, are in <folder>/struck. None: nothing of that is in the job.
        claims: Which sites pass for others, see `faults.Impostor`.
        permitted: Site -> classes that it may teach; None: what it declares.

    Returns:
        The job folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table, struck = folder / "sites.json", folder / "struck"
    table.write_text(json.dumps(sites), encoding="utf-8")
    target = folder / "job"
    job_folder.copy(
        JOBS / job, target, sites=list(sites), settings=settings or {}, per_site=per_site
    )
    here = 'site = "{SITE_NAME}"'
    faults = f'plan = {json.dumps(list(plan or ()))}, folder = "{struck}"'
    of_site = f'{here}, table = "{table}"' + (
        "" if plan is None else f', {faults}, epochs = "{{epochs}}"'
    )
    for client in target.glob("app_*/config/config_fed_client.conf"):
        _substitute(client, _SITE, f'path = "{site}", args {{ {of_site} }}')
        if plan is not None:
            executor = f'path = "faults.FaultyExecutor", args {{ {here}, {faults},'
            _substitute(client, _EXECUTOR, executor)
            add_result_filters(
                client,
                f'path = "faults.KeepResults", args {{ {here}, folder = "{struck}" }}',
                f'path = "faults.HostileResult", args {{ {here}, {faults} }}',
            )
        if claims:
            said = f"{here}, claims = {json.dumps(claims)}"
            _add_components(client, f'id = "impostor", path = "faults.Impostor", args {{ {said} }}')
    server = target / job_folder.SERVER_CONFIG
    if plan is not None:
        struck.mkdir(parents=True, exist_ok=True)
        _add_components(
            server,
            f'id = "full_disk", path = "faults.FullDisk", args {{ {faults} }}',
            f'id = "keep_rounds", path = "faults.KeepRounds", args {{ folder = "{struck}" }}',
        )
    if permitted is not None:
        arguments = f"args {{ permitted = {json.dumps(permitted)} }}"
        _substitute(server, _CLASS_FILTERS, f'path = "{{}}", {arguments}', times=2)
    return target


def add_result_filters(client, *filters):
    """Put further filters of what was trained behind a client configuration's own."""
    added = "".join(f"      {{ {line} }}\n" for line in filters)
    if "task_result_filters = []" in client.read_text(encoding="utf-8"):  # heads stay at the site
        chain = f'[\n  {{ tasks = ["train"]\n    filters = [\n{added}    ] }}\n]'
        _substitute(client, r"task_result_filters = \[\]", f"task_result_filters = {chain}")
    else:
        _substitute(client, r"(LabelHead\" \}\n)", f"{{}}{added}")


def _add_components(path, *components):
    added = "".join(f"  {{ {line} }}\n" for line in components)
    _substitute(path, _COMPONENTS, f"components = [\n{added}")


def _substitute(path, pattern, new, times=1):
    """Replace what matches a pattern; {} in the new text stands for the pattern's group."""
    text, number = re.subn(
        pattern,
        lambda found: new.replace("{}", found[1]) if found.groups() else new,
        path.read_text(encoding="utf-8"),
    )
    assert number == times, (path, pattern)
    path.write_text(text, encoding="utf-8")


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
