"""A requested run of a job on this machine, and whether it can be made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxr_study.common.offered_data import DRAWINGS, demo_data
from cxr_study.common.spelling import nearest
from cxr_study.jobs.job import SITE, Job
from cxr_study.jobs.methods import METHODS, Method
from cxr_study.jobs.presets import JobError
from cxr_study.runs.finished_run import PUBLISHED, RunFolderError, checkpoint_folder


class InitialBodyError(ValueError):
    """An initial body is of another network than the job's."""


_LOGS = 64 * 2**20  # bytes of a run, besides models
_COPIES = 5  # of the model: best and last, at server and sites, and optimizers


@dataclass(frozen=True)
class RunRequest:
    """A run of a job in FLARE's simulator, or in a POC of its own, which takes the first three.

    Attributes:
        job: What is run.
        folder: New folder for everything the run makes.
        site_files: Folder of <site>.yaml; None: the phantom.
        initial_body: Checkpoint to start from; None: the phantom's. In a POC a setting of the job.
        earlier: Folder of the run that this one continues; None: it is a fresh run.
        model: Of the earlier run, to start from: "last", with the sites' state, or "best", without.
        local_models: Whether each site runs the job alone as well, for comparison.
        published: Whether the job is run as published as well, for comparison: the same recipe, the
            method's own strategy, and nothing of `methods.BEYOND`.
        preset: Name of that which the settings are of; None: see `preset_of`.
    """

    job: Job
    folder: Path
    site_files: Path | None = None
    initial_body: Path | None = None
    earlier: Path | None = None
    model: str = "last"
    local_models: bool = False
    published: bool = False
    preset: str | None = None

    @property
    def workspace(self) -> Path:
        """FLARE's workspace of the federated run."""
        return self.folder / "workspace"

    def local_workspace(self, site: str) -> Path:
        """FLARE's workspace of the run of one site alone."""
        return self.folder / "local" / site

    @property
    def published_workspace(self) -> Path:
        """FLARE's workspace of the run as published."""
        return self.folder / PUBLISHED / "workspace"

    def start(self, workspace: Path) -> Path | None:
        """Checkpoint that the run in a workspace starts from; None: see `initial_body`."""
        if self.earlier is None:
            return self.initial_body
        before = self.earlier / workspace.relative_to(self.folder)
        return checkpoint_folder(before) / f"{self.model}.npz"

    def states(self, workspace: Path, sites: Sequence[str]) -> dict[str, Path]:
        """Site -> folder of its state, for the sites of a workspace that restore one."""
        if self.earlier is None or self.model == "best":
            return {}
        from surgical_aggregation.site.site_memory import has_state  # needs FLARE

        before = self.earlier / workspace.relative_to(self.folder)
        folders = {site: checkpoint_folder(before, site) for site in sites}
        return {site: folder for site, folder in folders.items() if has_state(folder)}

    def environment(self, workspace: Path) -> dict[str, str]:
        """Variables that tell the job in a workspace where sites and initial body are."""
        values = {"CXR_SITES": self.site_files, "CXR_INITIAL_BODY": self.start(workspace)}
        return {name: str(path.absolute()) for name, path in values.items() if path is not None}


def check(request: RunRequest) -> None:
    """Refuse what `simulated_run.run` could not run. Quick: reads no table and no image.

    Raises:
        RunFolderError: The run's folder has a space in its path, its disk is full, or the run to
            continue has no model to start from; with `local_models`, also one of a site alone.
        JobError: The job trains nothing, or with `published` is none of a paper's.
        InitialBodyError: The initial body is of another network than the job's.
        ValueError: A setting, a site file or its name is unusable, or sites are too few.
    """
    job, sites = request.job, request.job.sites
    by_flare = f"nvflare simulator <folder> -w <workspace> -c {','.join(sites)} -t {len(sites)}"
    job.check()
    if " " in str(request.folder.absolute()):
        raise RunFolderError(
            f"FLARE's simulator needs a folder without spaces in its path; got "
            f"{str(request.folder.absolute())!r}. Give another --out."
        )
    if not job.trains:
        raise JobError(
            f"job {job.name!r} trains nothing, so there is nothing to report; run its folder "
            f"with {by_flare}"
        )
    if job.has_own_site:
        raise JobError(
            f"the sites of job {job.name!r} are of another class than {SITE}, whose data is not "
            f"known here. Run it with FLARE: {by_flare}; then surgagg report <workspace>"
        )
    if job.encrypted:
        raise JobError(
            f"the models of job {job.name!r} are encrypted, so nobody here could evaluate "
            "them; submit it to servers and sites that were provisioned for homomorphic "
            "encryption (nvflare poc prepare -he), and open the model with `surgagg model decrypt`."
        )
    if request.published and (job.method not in METHODS or not METHODS[job.method].common_model):
        known = [name for name, method in METHODS.items() if method.common_model]
        raise JobError(
            f"--published needs one of the jobs {', '.join(known)}, by name; got {job.name!r}. "
            "Leave it out."
        )
    alone = [request.local_workspace(site) for site in sites] if request.local_models else []
    for start in map(request.start, [request.workspace, *alone]):
        if request.earlier is not None and start is not None and not start.is_file():
            raise RunFolderError(
                f"the run to continue needs {start}, which is not there: it ended before its first "
                "round, or that site was not in it. Run it anew, or without --local-models."
            )
    if request.published and (start := request.start(request.workspace)) is not None:
        _check_published_start(METHODS[job.method], start)
    check_sites(request.site_files, sites)
    if request.earlier is None:
        check_body(request.site_files, request.initial_body)
        check_network(request.initial_body, job.at_server.backbone, job.at_server.hidden)
    _check_disk(request, parties=1 + len(sites) + len(alone))


def _check_published_start(method: Method, start: Path) -> None:
    """Refuse a start that the method as published could not have, before the other runs are made.

    Raises:
        StrategyError: See `Strategy.check_start`.
    """
    from surgical_aggregation.aggregation.strategy import find, kinds_of
    from surgical_aggregation.checkpoints.checkpoint import load

    body = load(start)
    kinds = kinds_of(body.manifest, body.variables)
    find(method.strategy).check_start(body.variables, kinds)


def check_body(site_files: Path | None, initial_body: Path | None) -> None:
    """Refuse to start a training on real images from drawings, unless that is asked for.

    Raises:
        JobError: There are site files, and no initial body.
    """
    if site_files is not None and initial_body is None:
        raise JobError(
            "training with --site-files needs --initial-body: a checkpoint (surgagg model init "
            f"initial.npz --weights imagenet), or '{DRAWINGS}', the small network pre-trained on "
            "drawings."
        )


def check_sites(site_files: Path | None, sites: Sequence[str]) -> None:
    """Refuse a <site>.yaml that is unusable, or a site that the phantom (None) does not have.

    Raises:
        JobError: The phantom has no such site.
        ValueError: A file is unusable; or there is no phantom.
    """
    if site_files is not None:
        from cxr_study.data.sites.site_file import read_site_file

        for site in sites:
            read_site_file(site_files / f"{site}.yaml")
        return
    known = demo_data().sites
    if strange := [site for site in sites if site not in known]:
        raise JobError(
            f"the phantom has no site {strange[0]!r}; {nearest(strange[0], known)}. Other "
            "sites need --site-files."
        )


def _check_disk(request: RunRequest, parties: int) -> None:
    """Refuse a disk on which the models of a run would not fit."""
    start = request.start(request.workspace)
    model = start.stat().st_size if start is not None and start.is_file() else 0
    needed = _LOGS + _COPIES * parties * model
    there = next(folder for folder in request.folder.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise RunFolderError(
            f"the run needs about {needed / 2**20:,.0f} MiB for models and logs; the disk of "
            f"{there} has {free / 2**20:,.0f}. Make room, or give another --out."
        )


def check_network(file: Path | None, backbone: str, hidden: int) -> None:
    """Refuse an initial body of another network, before anything is trained.

    `file` is a checkpoint, None the phantom's body; `backbone` and `hidden` are the job's.

    Raises:
        InitialBodyError: The body is of another network, or needs another input, as far as its
            manifest says.
        CheckpointError: The file is missing or no checkpoint.
    """
    facts: Mapping[str, Any] = {"backbone": "small_densenet"}
    if file is not None:
        from surgical_aggregation.checkpoints.checkpoint import load

        facts = load(file).manifest
    made_for = (facts.get("backbone", backbone), facts.get("hidden", 0))
    if made_for != (backbone, hidden):
        raise InitialBodyError(
            f"the job's network is {backbone} with {hidden} hidden units; the initial body "
            f"{file or 'of the phantom'} is of {made_for[0]} with {made_for[1]}. Make one: surgagg "
            f"model init initial.npz --backbone {backbone} --hidden {hidden}; and give it with "
            "--initial-body."
        )
    if "input" not in facts:
        return
    from cxr_study.training.network import input_facts

    if facts["input"] != (needed := input_facts(backbone)):
        raise InitialBodyError(
            f"the initial body {file} needs input {facts['input']}; the job's sites prepare "
            f"{needed}. Make it anew: surgagg model init initial.npz --backbone {backbone}"
        )
