"""The folder of a finished run: where things are in it; needs no FLARE."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType

from cxr_study.common import code_version
from cxr_study.jobs.folder import META, SERVER_APP, deployed_apps
from cxr_study.jobs.job import Job

RUN_FILE = "run.json"
"""In a run's folder: the facts that `write_facts` writes."""

RESULTS = "results"
"""In the folder of a run on a deployed system: the downloads, by job."""

BEFORE = "before.npz"
"""In the folder of a run that continued another: the model that it started from."""

PUBLISHED = "published"
"""In a run's folder: the same job and its workspace, with the method as published."""

SERVER = "workspace"
"""In a download: the server's folder of the job."""

SITES = "sites"
"""In the folder of a run in a POC: the sites' own files, which they do not send."""


class JobFailedError(RuntimeError):
    """A job did not end well; the message holds the reason and what to do or read."""


class InterruptedRunError(RuntimeError):
    """Somebody interrupted a run; the message says how to go on."""


class RunFolderError(ValueError):
    """A run's folder is in the way, or does not hold what is needed."""


def server_folder(workspace: Path) -> Path:
    """The server's results in a simulator workspace."""
    return workspace / "server" / "simulate_job"


def checkpoint_folder(workspace: Path, party: str = "server") -> Path:
    """The models of the server, or a site's files, in a simulator workspace."""
    return workspace / party / "checkpoints" / "simulate_job"


@dataclass(frozen=True)
class FinishedRun:
    """What a report is made of.

    Attributes:
        job: What was run.
        servers: The server's folders of the jobs that made the run; see `job_results`.
        site_files: Folder of <site>.yaml; None: the phantom.
        states: Site -> folder of its files of the run, as far as at hand. Its local models are in
            it, if the strategy leaves it any.
        alone: Site -> file of the best model that it trained alone, for comparison.
        published: File of the best model of the method as published, likewise; None: not run.
        before: File of the model that a continued run started from; None: it started afresh.
        other_splits: Sites whose patients are not split any more as they were for the training.
        breaks: How jobs of it failed, a line each, before others made it whole.
        unfinished: Runs for comparison that have not ended, or failed, and are left out.
        elsewhere: Whether the sites' data is elsewhere, so that nothing can be evaluated here.
        made: "date" of its start, "code" that made it and "preset", as far as known.
    """

    job: Job
    servers: tuple[Path, ...]
    site_files: Path | None
    states: Mapping[str, Path]
    alone: Mapping[str, Path]
    elsewhere: bool = False
    made: Mapping[str, str] = field(default_factory=dict)
    published: Path | None = None
    before: Path | None = None
    other_splits: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


def write_facts(
    folder: Path,
    site_files: Path | None,
    jobs: Sequence[str] = (),
    *,
    elsewhere: bool = False,
    preset: str | None = None,
    splits: Mapping[str, Path] = MappingProxyType({}),
    breaks: Sequence[str] = (),
) -> None:
    """Write what `finished_run` needs to know of a run; see `FinishedRun`.

    `jobs` are the ids of those that made it on a deployed system, oldest first; without any it ran
    in FLARE's simulator.
    """
    facts: dict[str, object] = {
        "site_files": site_files and str(site_files.absolute()),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "code": code_version.code(),
    }
    if preset:
        facts["preset"] = preset
    if splits:
        facts["splits"] = {site: (str(file), _digest(file)) for site, file in splits.items()}
    if jobs:
        facts |= {"jobs": list(jobs), "elsewhere": elsewhere, "breaks": list(breaks)}
    (folder / RUN_FILE).write_text(json.dumps(facts) + "\n", encoding="utf-8")


def read_site_files(folder: Path) -> Path | None:
    """Folder of a run's site files; None: the phantom."""
    path = _facts(folder)["site_files"]
    return None if path is None else Path(path)


def read_breaks(folder: Path) -> tuple[str, ...]:
    """How jobs of a run on a deployed system have failed; see `FinishedRun`."""
    return tuple(_facts(folder).get("breaks", ())) if (folder / RUN_FILE).is_file() else ()


def finished_run(folder: Path) -> FinishedRun:
    """The run that a folder holds, in FLARE's simulator or on a deployed system.

    Runs for comparison that have not ended well are left out; see `FinishedRun.unfinished`.

    Raises:
        RunFolderError: The folder is no run's.
        ResultsError: A site that ran alone has left no model.
    """
    facts = _facts(folder)
    job, site_files = Job.from_folder(folder / "job"), read_site_files(folder)
    sites = job.sites
    made = {key: facts[key] for key in ("date", "code", "preset") if key in facts}
    if jobs := facts.get("jobs"):
        servers = tuple(folder / RESULTS / job_id / SERVER for job_id in jobs)
        states = {site: folder / SITES / site for site in sites}
        return FinishedRun(
            job,
            servers,
            site_files,
            states,
            {},
            facts["elsewhere"],
            made,
            breaks=read_breaks(folder),
        )
    workspace, local = folder / "workspace", folder / "local"
    states = {site: checkpoint_folder(workspace, site) for site in sites}
    published = folder / PUBLISHED / "workspace"
    compared = {"as published": published, **{f"{site} alone": local / site for site in sites}}
    begun = {title: of for title, of in compared.items() if of.is_dir()}
    ended = {of for of in begun.values() if _ended(of)}
    return FinishedRun(
        job,
        (server_folder(workspace),),
        site_files,
        states,
        alone={site: _alone(local / site, site) for site in sites if local / site in ended},
        made=made,
        published=_best(published) if published in ended else None,
        before=folder / BEFORE if (folder / BEFORE).is_file() else None,
        other_splits=tuple(
            site
            for site, (file, digest) in facts.get("splits", {}).items()
            if Path(file).is_file() and _digest(Path(file)) != digest
        ),
        unfinished=tuple(title for title, of in begun.items() if of not in ended),
    )


def run_of(folder: Path, site_files: Path | None = None, *, elsewhere: bool = True) -> FinishedRun:
    """The run of any folder that holds one: ours, FLARE's workspace, or a downloaded job.

    The latter two do not say where the data is: see `FinishedRun`.

    Raises:
        RunFolderError: The folder is none of these.
        ResultsError: A site that ran alone has left no model.
    """
    if (folder / RUN_FILE).is_file():
        return finished_run(folder)
    if (server_folder(folder) / META).is_file():
        return workspace_run(folder, site_files, elsewhere=elsewhere)
    jobs = [path.parent for path in folder.glob("job/*/meta.json")]
    server = folder / SERVER
    if len(jobs) != 1 or not server.is_dir():
        raise RunFolderError(
            "the folder of a run, of a downloaded job, or a workspace of FLARE's simulator is "
            f"needed; {folder} is none."
        )
    return FinishedRun(Job.from_folder(jobs[0]), (server,), site_files, {}, {}, elsewhere)


def workspace_run(
    workspace: Path, site_files: Path | None = None, *, elsewhere: bool = True
) -> FinishedRun:
    """The run that FLARE's simulator, or a recipe in it, left in its workspace.

    The job, which FLARE has taken apart, is put together again in <workspace>/job.
    """
    server, folder = server_folder(workspace), workspace / "job"
    shutil.copytree(server / SERVER_APP, folder / SERVER_APP, dirs_exist_ok=True)
    shutil.copy(server / META, folder / META)
    meta = json.loads((folder / META).read_text(encoding="utf-8"))
    for site, app in deployed_apps(meta).items():
        own = workspace / site / "simulate_job" / f"app_{site}"
        shutil.copytree(own, folder / app, dirs_exist_ok=True)
    job = Job.from_folder(folder)
    states = {site: checkpoint_folder(workspace, site) for site in job.sites}
    return FinishedRun(job, (server,), site_files, states, {}, elsewhere)


def _alone(workspace: Path, site: str) -> Path:
    from cxr_study.runs import job_results  # needs FLARE

    personal = job_results.personal_checkpoints({site: checkpoint_folder(workspace, site)})
    return personal.get(site) or _best(workspace)


def _ended(workspace: Path) -> bool:
    from cxr_study.runs import job_results  # needs FLARE

    events = {event["event"] for event in job_results.read_events(server_folder(workspace))}
    return "ended" in events and "failed" not in events


def _best(workspace: Path) -> Path:
    from cxr_study.runs import job_results  # needs FLARE

    return job_results.best_checkpoint(server_folder(workspace))


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _facts(folder: Path) -> dict:
    path = folder / RUN_FILE
    if not path.is_file():
        raise RunFolderError(
            f"the folder of an earlier `surgagg run` is needed; {folder} holds no {RUN_FILE}."
        )
    facts: dict = json.loads(path.read_text(encoding="utf-8"))
    return facts
