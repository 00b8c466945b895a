"""The project's job folders with tiny sites: the same wiring, another site and body.

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

CLASSES = (
    *(KERAS, NUMPY, "faults.FaultyServer", "faults.FaultyExecutor", "faults.FaultyResult"),
    "faults.Impostor",
)
"""Of a tiny job, besides those of the product."""

_SITE = r'path = "[\w.]+\.ChestXraySite"\s+args \{(?:[^{}]|\{\w+\})*\}'
_EXECUTOR = r'path = "[\w.]+\.KerasExecutor"\s+args \{'
_CLASS_FILTERS = r'path = "([\w.]+\.(?:SelectHead|CheckResult|SiteCheck))"'


def make(
    folder, sites, *, job="surgical", settings=None, per_site=None, site=NUMPY, plan=None,
    claims=None, permitted=None,
):  # fmt: skip
    """Copy a job for sites {name: {"classes", "images"}}; returns the job folder.

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
        permitted: Site -> classes that it may train; None: what it declares.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table, struck, target = folder / "sites.json", folder / "struck", folder / "job"
    table.write_text(json.dumps(sites), encoding="utf-8")
    job_folder.copy(
        JOBS / job, target, sites=list(sites), settings=settings or {}, per_site=per_site
    )
    server = target / job_folder.SERVER_CONFIG
    here = 'site = "{SITE_NAME}"'
    of_site = f'{here}, table = "{table}"'
    faults = f'plan = {json.dumps(list(plan or ()))}, folder = "{struck}"'
    if plan is not None:
        struck.mkdir(parents=True, exist_ok=True)
        of_site += f', {faults}, epochs = "{{epochs}}"'
        _add_component(server, f'id = "faults", path = "faults.FaultyServer", args {{ {faults} }}')
    for client in target.glob("app_*/config/config_fed_client.conf"):
        _substitute(client, _SITE, f'path = "{site}", args {{ {of_site} }}')
        if plan is not None:
            executor = f'path = "faults.FaultyExecutor", args {{ {here}, {faults},'
            _substitute(client, _EXECUTOR, executor)
            add_result_filter(client, f'path = "faults.FaultyResult", args {{ {here}, {faults} }}')
        if claims:
            said = f"{here}, claims = {json.dumps(claims)}"
            _add_component(client, f'id = "impostor", path = "faults.Impostor", args {{ {said} }}')
    if permitted is not None:
        arguments = f"args {{ permitted = {json.dumps(permitted)} }}"
        _substitute(
            server, _CLASS_FILTERS, f'path = "{{}}", {arguments}', times=4
        )  # "refit" has one
    return target


def add_result_filter(client, line):
    """Put a further filter of what was trained behind a client configuration's own."""
    added = f"      {{ {line} }}\n"
    if "task_result_filters = []" in client.read_text(encoding="utf-8"):  # heads stay at the site
        chain = f'[\n  {{ tasks = ["train"]\n    filters = [\n{added}    ] }}\n]'
        _substitute(client, r"task_result_filters = \[\]", f"task_result_filters = {chain}")
    else:
        _substitute(client, r"(LabelHead\" \}\n)", f"{{}}{added}")


def _add_component(path, line):
    _substitute(path, r"components = \[\n", f"components = [\n  {{ {line} }}\n")


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
    kernel = np.random.default_rng(7).uniform(-0.9, 0.9, (INPUTS, FEATURES))
    body = {"dense/kernel": kernel} | {
        name: np.full(FEATURES, value)
        for name, value in {
            "dense/bias": 0, "bn/gamma": 1, "bn/beta": 0, "bn/moving_mean": 0.1,
            "bn/moving_variance": 0.9,
        }.items()
    }  # fmt: skip
    batch_norm = frozenset(name for name in body if name.startswith("bn/"))
    body = {name: value.astype(np.float32) for name, value in body.items()}
    manifest = {"head_features": FEATURES, "initial_body_sha256": digest(body)}
    save(Checkpoint(body, manifest | VariableKinds(batch_norm).facts()), path)
    return path
