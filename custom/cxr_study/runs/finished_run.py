"""The folder of a finished run: where things are in it; needs no FLARE."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timezone
from pathlib import Path

from cxr_study.common import code_version
from cxr_study.jobs.folder import META, SERVER_APP, deployed_apps
from cxr_study.jobs.job import Job

RUN_FILE = "run.json"
"""In a run's folder: its `RunFacts`."""

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
        elsewhere: Whether the sites' data is elsewhere, so that nothing can be evaluated here.
        alone: Site -> file of the best model that it trained alone, for comparison.
        published: File of the best model of the method as published, likewise; None: not run.
        before: File of the model that a continued run started from; None: it started afresh.
        other_splits: Sites whose patients are not split any more as they were for the training.
        breaks: How jobs of it failed, a line each, before others made it whole.
        unfinished: Runs for comparison that have not ended, or failed, and are left out.
        made: "date" of its start, "code" that made it and "preset", as far as known.
    """

    job: Job
    servers: tuple[Path, ...]
    site_files: Path | None
    states: Mapping[str, Path] = field(default_factory=dict)
    elsewhere: bool = False
    made: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, Path] = field(default_factory=dict)
    published: Path | None = None
    before: Path | None = None
    other_splits: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunFacts:
    """What `finished_run` needs to know of a run besides its files; see `FinishedRun`.

    Attributes:
        jobs: Ids of those that made it on a deployed system, oldest first; without any it ran in
            FLARE's simulator.
        splits: Site -> its split file, and that file's digest.
    """

    site_files: Path | None
    jobs: Sequence[str] = ()
    elsewhere: bool = False
    breaks: Sequence[str] = ()
    preset: str | None = None
    splits: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    date: str = ""
    code: str = ""

    def write(self, folder: Path) -> None:
        """Write them into a run's folder, with the date and the version of the code."""
        date = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        facts = asdict(replace(self, date=date, code=code_version.code()))
        facts["site_files"] = self.site_files and str(self.site_files.absolute())
        (folder / RUN_FILE).write_text(json.dumps(facts) + "\n", encoding="utf-8")


def read_facts(folder: Path) -> RunFacts:
    """The facts of the run that a folder holds; those that this version does not know are left.

    Raises:
        RunFolderError: The folder is no run's.
    """
    path = folder / RUN_FILE
    if not path.is_file():
        raise RunFolderError(
            f"the folder of an earlier `surgagg run` is needed; {folder} holds no {RUN_FILE}."
        )
    facts = json.loads(path.read_text(encoding="utf-8"))
    known = {each.name: facts[each.name] for each in fields(RunFacts) if each.name in facts}
    site_files = known.pop("site_files", None)
    return RunFacts(None if site_files is None else Path(site_files), **known)


def finished_run(folder: Path) -> FinishedRun:
    """The run that a folder holds, in FLARE's simulator or on a deployed system.

    Runs for comparison that have not ended well are left out; see `FinishedRun.unfinished`.

    Raises:
        RunFolderError: The folder is no run's.
        ResultsError: A site that ran alone has left no model.
    """
    facts, job = read_facts(folder), Job.from_folder(folder / "job")
    made = {"date": facts.date, "code": facts.code, "preset": facts.preset or ""}
    made = {name: value for name, value in made.items() if value}
    if facts.jobs:
        servers = tuple(folder / RESULTS / job_id / SERVER for job_id in facts.jobs)
        states = {site: folder / SITES / site for site in job.sites}
        run = FinishedRun(job, servers, facts.site_files, states, facts.elsewhere, made)
        return replace(run, breaks=tuple(facts.breaks))
    workspace, local = folder / "workspace", folder / "local"
    states = {site: checkpoint_folder(workspace, site) for site in job.sites}
    published = folder / PUBLISHED / "workspace"
    compared = {"as published": published, **{f"{site} alone": local / site for site in job.sites}}
    begun = {title: of for title, of in compared.items() if of.is_dir()}
    ended = {of for of in begun.values() if _ended(of)}
    return FinishedRun(
        job,
        (server_folder(workspace),),
        facts.site_files,
        states,
        made=made,
        alone={site: _best(local / site, site) for site in job.sites if local / site in ended},
        published=_best(published) if published in ended else None,
        before=folder / BEFORE if (folder / BEFORE).is_file() else None,
        other_splits=tuple(
            site
            for site, (file, digest) in facts.splits.items()
            if Path(file).is_file() and file_digest(Path(file)) != digest
        ),
        unfinished=tuple(title for title, of in begun.items() if of not in ended),
    )


def run_of(folder: Path, site_files: Path | None = None, *, elsewhere: bool = True) -> FinishedRun:
    """The run of any folder that holds one: ours, FLARE's workspace, or a downloaded job.

    The latter two do not say where the data is: see `FinishedRun`. In a workspace the job, which
    FLARE has taken apart, is put together again in <workspace>/job.

    Raises:
        RunFolderError: The folder is none of these.
        ResultsError: A site that ran alone has left no model.
    """
    if (folder / RUN_FILE).is_file():
        return finished_run(folder)
    server, states = folder / SERVER, {}
    jobs = [path.parent for path in folder.glob("job/*/meta.json")]
    if (server_folder(folder) / META).is_file():
        server, jobs = server_folder(folder), [folder / "job"]
        shutil.copytree(server / SERVER_APP, jobs[0] / SERVER_APP, dirs_exist_ok=True)
        shutil.copy(server / META, jobs[0] / META)
        meta = json.loads((server / META).read_text(encoding="utf-8"))
        for site, app in deployed_apps(meta).items():
            own = folder / site / "simulate_job" / f"app_{site}"
            shutil.copytree(own, jobs[0] / app, dirs_exist_ok=True)
            states[site] = checkpoint_folder(folder, site)
    if len(jobs) != 1 or not server.is_dir():
        raise RunFolderError(
            "the folder of a run, of a downloaded job, or a workspace of FLARE's simulator is "
            f"needed; {folder} is none."
        )
    return FinishedRun(Job.from_folder(jobs[0]), (server,), site_files, states, elsewhere)


def file_digest(file: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _ended(workspace: Path) -> bool:
    from cxr_study.runs.job_results import read_events  # needs FLARE

    events = {event["event"] for event in read_events(server_folder(workspace))}
    return "ended" in events and "failed" not in events


def _best(workspace: Path, party: str = "server") -> Path:
    """The best model of a run for comparison: a site's own where it has one, else the server's."""
    from cxr_study.runs.job_results import best_checkpoint, personal_checkpoints  # needs FLARE

    own = personal_checkpoints({party: checkpoint_folder(workspace, party)})
    return own.get(party) or best_checkpoint(server_folder(workspace))
