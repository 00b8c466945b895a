"""The folder of a finished run: its files, and the facts that a report needs. Needs no FLARE.

run.json      facts: site files, job ids, preset, date, code (`RunFacts`)
job/          the job folder
workspace/    FLARE's workspace of the federated run (simulator)
local/<site>/ FLARE's workspace of the run of one site alone
published/    the same job with the method as published, and its workspace
results/<id>/ downloads (deployed system)
sites/<site>/ the sites' own files (POC)
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from cxr_study.common import code_version
from cxr_study.common.files import atomic_write
from cxr_study.jobs.folder import META, SERVER_APP, deployed_apps
from cxr_study.jobs.job import Job

RUN_FILE = "run.json"
"""In a run's folder: its `RunFacts`, JSON."""

MARKER = f"job/{META}"
"""File by which the folder of a run is recognized."""

RESULTS = "results"
"""In the folder of a run on a deployed system: the downloads, a folder per job."""

BEFORE = "before.npz"
"""In the folder of a run that continued another: the model that it started from."""

PUBLISHED = "published"
"""In a run's folder: the same job with the method as published, and its workspace."""

SERVER = "workspace"
"""In a download: the server's folder of the job."""

SITES = "sites"
"""In the folder of a run in a POC: the sites' own files, which they do not send."""

STATES = "SURGAGG_SITE_STATES"
"""Environment variable of FLARE's simulator: JSON, site -> absolute path of its `checkpoint_folder`
of an earlier run, with which it starts."""


class JobFailedError(RuntimeError):
    """A job failed; the message gives the reason, and what to do or which log to read."""


class InterruptedRunError(RuntimeError):
    """A run was interrupted; the message states how to resume it."""


class RunFolderError(ValueError):
    """A run's folder exists where a new one is needed, or lacks something that is needed."""


def server_folder(workspace: Path) -> Path:
    """The server's folder of the job in a simulator workspace: record, metrics, models."""
    return workspace / "server" / "simulate_job"


def checkpoint_folder(workspace: Path, party: str = "server") -> Path:
    """The folder of checkpoints of the server (default) or a site in a simulator workspace."""
    return workspace / party / "checkpoints" / "simulate_job"


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run that its other files do not contain; the content of `RUN_FILE`.

    Attributes:
        site_files: Folder of <site>.yaml; None: the phantom.
        jobs: Ids of the run's jobs on a deployed system, oldest first; empty: the run is one of
            FLARE's simulator.
        elsewhere: Whether the sites' data is on other machines, so no model is evaluated here.
        breaks: One line per failed job that another job of the run continued.
        preset: Name of the preset of the settings; None: not given.
        splits: Site -> path of its split file, and the file's SHA-256 when the run started.
        date: UTC; "": not known.
        code: Version of the code, see `code_version`; "": not known.
    """

    site_files: Path | None = None
    jobs: Sequence[str] = ()
    elsewhere: bool = False
    breaks: Sequence[str] = ()
    preset: str | None = None
    splits: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    date: str = ""
    code: str = ""

    def write(self, folder: Path) -> None:
        """Write the facts into a run's folder, with today's date and the version of the code."""
        date = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        facts = asdict(replace(self, date=date, code=code_version.code()))
        facts["site_files"] = self.site_files and str(self.site_files.absolute())
        atomic_write(folder / RUN_FILE, json.dumps(facts) + "\n")


@dataclass(frozen=True)
class FinishedRun:
    """The inputs of a run's report.

    Attributes:
        job: What was run.
        servers: The server's folders of the jobs that make up the run, oldest first; see
            `job_results`.
        facts: What its other files do not contain, as far as known.
        states: Site -> folder of its own files of the run, which may not exist on this machine. It
            holds the site's personal models, if the strategy has any.
        alone: Site -> file of the best model that it trained alone, for comparison.
        published: File of the best model of the method as published, for comparison; None: not run.
        before: File of the model that a continued run started from; None: it continues no run.
        other_splits: Sites whose split file has changed since the training.
        unfinished: Names of runs for comparison that failed or have not ended; they are left out.
    """

    job: Job
    servers: tuple[Path, ...]
    facts: RunFacts
    states: Mapping[str, Path] = field(default_factory=dict)
    alone: Mapping[str, Path] = field(default_factory=dict)
    published: Path | None = None
    before: Path | None = None
    other_splits: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


def read_facts(folder: Path) -> RunFacts:
    """Read the facts of a run; keys that this version does not know are ignored.

    Args:
        folder: The run's folder.

    Raises:
        RunFolderError: The folder is not that of a run, or its `RUN_FILE` is damaged.
    """
    from pydantic import TypeAdapter  # takes a quarter of a second

    path = folder / RUN_FILE
    if not path.is_file():
        raise RunFolderError(
            f"the folder of an earlier `surgagg run` is needed; {folder} holds no {RUN_FILE}."
        )
    try:
        return TypeAdapter(RunFacts).validate_json(path.read_bytes())
    except ValueError:
        raise RunFolderError(
            f"{path} is damaged. Replace its content by "
            '{"site_files": "<folder of <site>.yaml>"}, for the phantom by {"site_files": null}; a '
            "deployed job is downloaded again by surgagg deploy watch <id>."
        ) from None


def finished_run(folder: Path) -> FinishedRun:
    """Describe the run in a folder that `surgagg` made, in FLARE's simulator or a deployed system.

    Runs for comparison that failed or have not ended are left out; see `FinishedRun.unfinished`.

    Args:
        folder: The run's folder, with a `RUN_FILE`.

    Raises:
        RunFolderError: The folder is not that of a run.
        ResultsError: The completed run of a site alone has no model.
    """
    facts, job = read_facts(folder), Job.from_folder(folder / "job")
    if facts.jobs:
        servers = tuple(folder / RESULTS / job_id / SERVER for job_id in facts.jobs)
        states = {site: folder / SITES / site for site in job.sites}
        return FinishedRun(job, servers, facts, states)
    workspace, local = folder / "workspace", folder / "local"
    states = {site: checkpoint_folder(workspace, site) for site in job.sites}
    published = folder / PUBLISHED / "workspace"
    compared = {"as published": published, **{f"{site} alone": local / site for site in job.sites}}
    started = {title: folder for title, folder in compared.items() if folder.is_dir()}
    ended = {folder for folder in started.values() if _ended(folder)}
    return FinishedRun(
        job,
        (server_folder(workspace),),
        facts,
        states,
        alone={site: _best(local / site, site) for site in job.sites if local / site in ended},
        published=_best(published) if published in ended else None,
        before=folder / BEFORE if (folder / BEFORE).is_file() else None,
        other_splits=tuple(
            site
            for site, (file, digest) in facts.splits.items()
            if Path(file).is_file() and file_digest(Path(file)) != digest
        ),
        unfinished=tuple(title for title, folder in started.items() if folder not in ended),
    )


def run_of(folder: Path, site_files: Path | None = None, *, elsewhere: bool = True) -> FinishedRun:
    """Describe the run in a folder of any kind: `surgagg`'s, FLARE's workspace, a downloaded job.

    Args:
        folder: The folder. In a simulator workspace, where FLARE distributes the parts of the job
            folder, the job folder is reassembled in <workspace>/job.
        site_files: Folder of <site>.yaml, for a workspace or a download, which do not contain it.
            Default None: see `elsewhere`.
        elsewhere: Whether the data of a workspace or a download is on other machines. Default True.

    Raises:
        RunFolderError: The folder is none of these.
        ResultsError: The completed run of a site alone has no model.
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
    facts = RunFacts(site_files, elsewhere=elsewhere)
    return FinishedRun(Job.from_folder(jobs[0]), (server,), facts, states)


def file_digest(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _ended(workspace: Path) -> bool:
    """Whether the run in a simulator workspace has ended without failure."""
    from cxr_study.runs.job_results import read_events  # needs FLARE

    events = {event["event"] for event in read_events(server_folder(workspace))}
    return "ended" in events and "failed" not in events


def _best(workspace: Path, party: str = "server") -> Path:
    """The best model of a run for comparison: a site's own where it has one, else the server's."""
    from cxr_study.runs.job_results import best_checkpoint, personal_checkpoints  # needs FLARE

    own = personal_checkpoints({party: checkpoint_folder(workspace, party)})
    return own.get(party) or best_checkpoint(server_folder(workspace))
