"""A requested run of a job on this machine, and the checks before it starts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxr_study.common.offered_data import DRAWINGS, PHANTOM, demo_data
from cxr_study.common.spelling import nearest
from cxr_study.jobs.job import SITE, Job
from cxr_study.jobs.method import Method
from cxr_study.jobs.methods import METHODS, PAPERS
from cxr_study.jobs.presets import JobError
from cxr_study.runs.finished_run import RunFolderError, checkpoint_folder


class InitialBodyError(ValueError):
    """An initial body belongs to another network than the job's."""


_REPLACED = {
    "sites": ("--site-files or --phantom", PHANTOM),
    "initial_body": ("--initial-body (in surgagg continue: the earlier run)", DRAWINGS),
    "continues": ("surgagg continue", ""),
    "check_only": ("surgagg deploy check", False),
}
"""Setting -> what replaces it in the simulator; and a value that fits where that is not given."""

_LOGS = 64 * 2**20  # bytes of a run in addition to its models
_COPIES = 5  # of the model per party: best and last model, personal variables, optimizers


@dataclass(frozen=True)
class RunRequest:
    """A run of a job in FLARE's simulator, or in a new POC, which uses the first three attributes.

    Attributes:
        job: The job to run.
        folder: New folder for all files of the run.
        site_files: Folder of <site>.yaml; None: the phantom.
        initial_body: Checkpoint to start from; None: the phantom's. In a POC it is a setting of the
            job instead.
        earlier: Folder of the run that this one continues; None: it continues no run.
        model: Model of the earlier run to start from: "last", with the sites' state, or "best",
            without.
        local_models: Whether each site also runs the job alone, for comparison.
        published: Whether the method is also run as published, for comparison: with the same
            recipe, the method's own strategy, and without the additions in `methods.BEYOND`.
        preset: Name of the preset of the settings; None: see `preset_of`.
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

    def start(self, workspace: Path) -> Path | None:
        """Checkpoint that the run in a workspace starts from.

        Args:
            workspace: One of this run: the federated one, the published one, or a site's.

        Returns:
            The model of the same workspace in the earlier run, which need not exist; without an
            earlier run, `initial_body`.
        """
        if self.earlier is None:
            return self.initial_body
        before = self.earlier / workspace.relative_to(self.folder)
        return checkpoint_folder(before) / f"{self.model}.npz"

    def states(self, workspace: Path, sites: Sequence[str]) -> dict[str, Path]:
        """Site -> folder of its state in the earlier run, for the sites that restore one."""
        if self.earlier is None or self.model == "best":
            return {}
        from surgical_aggregation.site.site_memory import has_state  # needs FLARE

        before = self.earlier / workspace.relative_to(self.folder)
        folders = {site: checkpoint_folder(before, site) for site in sites}
        return {site: folder for site, folder in folders.items() if has_state(folder)}

    def environment(self, workspace: Path) -> dict[str, str]:
        """Environment variables with the paths of site files and initial body, for a workspace."""
        values = {"CXR_SITES": self.site_files, "CXR_INITIAL_BODY": self.start(workspace)}
        return {name: str(path.absolute()) for name, path in values.items() if path is not None}


def check(request: RunRequest) -> None:
    """Check that `simulated_run.run` can run a request. Quick: reads no label table and no image.

    Args:
        request: The run.

    Raises:
        RunFolderError: The folder's path has a space, its disk is full, or the run to continue has
            no model to start from (with `local_models`: also for a site alone).
        JobError: The job trains nothing, its data is not known here, its models are encrypted,
            `published` does not apply to its method, or a setting has to be given by an option.
        InitialBodyError: The initial body belongs to another network than the job's.
        ValueError: A setting, a site file or its name is not usable, or there are too few sites.
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
            f"the models of job {job.name!r} are encrypted, so they cannot be evaluated here; "
            "submit it to servers and sites that were provisioned for homomorphic encryption "
            "(nvflare poc prepare -he), and open the model with `surgagg model decrypt`."
        )
    _check_replaced(request)
    known = [name for name in PAPERS if METHODS[name].common_model]
    if request.published and job.method not in known:
        raise JobError(
            f"--published needs one of the jobs {', '.join(known)}, by name; got {job.name!r}. "
            "Leave it out."
        )
    alone = [request.local_workspace(site) for site in sites] if request.local_models else []
    for start in map(request.start, [request.workspace, *alone]):
        if request.earlier is not None and start is not None and not start.is_file():
            raise RunFolderError(
                f"the run to continue needs {start}, which does not exist: it ended before its "
                "first round, or that site was not in it. Rerun it, or omit --local-models."
            )
    if request.published and (start := request.start(request.workspace)) is not None:
        _check_published_start(METHODS[job.method], start)
    check_sites(request.site_files, sites)
    if request.earlier is None:
        check_body(request.site_files, request.initial_body)
        check_network(request.initial_body, job.at_server.backbone, job.at_server.hidden)
    _check_disk(request, parties=1 + len(sites) + len(alone))


def _check_replaced(request: RunRequest) -> None:
    """Refuse settings that win over the request's data or start: its report would state others."""
    from cxr_study.jobs.settings import JobSettings

    given = {"sites": request.site_files, "initial_body": request.start(request.workspace)}
    settings = [request.job.at_server, *map(request.job.at, request.job.sites)]
    for name, (option, same) in _REPLACED.items():
        default = JobSettings.model_fields[name].default
        for value in (getattr(each, name) for each in settings):
            if value != default and (value != same or given[name] is not None):
                raise JobError(
                    f"in the simulator, {option} replaces setting {name!r}; got {value!r}. Leave "
                    f"the setting at {default!r}."
                )


def _check_published_start(method: Method, start: Path) -> None:
    """Check that the method as published can start from a model, before the other runs are made.

    Raises:
        StrategyError: See `strategies.check_body`.
    """
    from surgical_aggregation.aggregation import batch_norm_strategy as strategies
    from surgical_aggregation.checkpoints.checkpoint import load

    body = load(start)
    kinds = strategies.kinds_of(body.manifest, body.variables)
    strategies.check_body(method.strategy, body.variables, kinds)


def check_body(site_files: Path | None, initial_body: Path | None) -> None:
    """Check that a training on real images has an explicit initial body.

    Without one, the network pre-trained on drawings would be used silently.

    Args:
        site_files: Folder of <site>.yaml; None: the phantom.
        initial_body: Checkpoint; None: not given.

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
    """Check that every site is described.

    Args:
        site_files: Folder of <site>.yaml; None: the phantom.
        sites: Names of the sites.

    Raises:
        JobError: The phantom has no site of this name.
        ValueError: A site file is not usable; or no installed package offers a phantom.
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
    """Raise `RunFolderError` if the models of so many parties would not fit on the run's disk."""
    start = request.start(request.workspace)
    model = start.stat().st_size if start is not None and start.is_file() else 0
    needed = _LOGS + _COPIES * parties * model
    existing = next(folder for folder in request.folder.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise RunFolderError(
            f"the run needs about {needed / 2**20:,.0f} MiB for models and logs; the disk of "
            f"{existing} has {free / 2**20:,.0f}. Make room, or give another --out."
        )


def check_network(file: Path | None, backbone: str, hidden: int) -> None:
    """Check that an initial body belongs to the job's network.

    Args:
        file: Checkpoint of the body; None: the phantom's, of small_densenet.
        backbone: The job's.
        hidden: Number of hidden units of the job's network.

    Raises:
        InitialBodyError: The body's manifest names another network or another input.
        CheckpointError: The file does not exist or is not a checkpoint.
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
            f"{needed}. Recreate it: surgagg model init new.npz --backbone {backbone}"
        )
