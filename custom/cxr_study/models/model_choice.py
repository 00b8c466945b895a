"""Which file a person means who names a run or a file, and a site."""

from __future__ import annotations

from pathlib import Path

from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import FinishedRun, RunFolderError, run_of
from cxr_study.runs.job_results import best_checkpoint, personal_checkpoints
from cxr_study.training import BEST_FILE
from cxr_study.training.network_facts import Network


def choose(
    path: Path, site: str | None = None, own_site: bool = True
) -> tuple[Path, Network | None]:
    """The file of a model, and the network of ours that its run's job names, if it does.

    Args:
        path: A checkpoint; the folder of a run or of a downloaded job, for its best model; or any
            folder with a best.npz.
        site: Whose personal model; None: the global one.
        own_site: Whether a job whose sites have a network of their own will do. Default True.

    Raises:
        ValueError: There is no such model.
        ResultsError: The run has not finished.
    """
    if path.is_file():
        if site is not None:
            raise ValueError(
                f"a site's model is found in the folder of a run; {path} is a file. Give the "
                "folder, or that site's site_best.npz without --site."
            )
        return path, None
    if not path.is_dir():
        raise ValueError(f"a model is needed: a run's folder, or a checkpoint; {path} is neither.")
    try:
        run = run_of(path)
    except RunFolderError:
        file = path / BEST_FILE
        if site is not None or not file.is_file():
            raise ValueError(
                f"the folder of a run, or one with a {BEST_FILE}, is needed; {path} is neither."
            ) from None
        return file, None
    return _model_of(run, site), _network(run.job, own_site)


def _model_of(run: FinishedRun, site: str | None) -> Path:
    personal = personal_checkpoints(run.states)
    if site is not None:
        if site in personal:
            return personal[site]
        sites = ", ".join(sorted(personal)) or "none"
        raise ValueError(
            f"{site} has no personal model in this run; sites that have one: {sites}. Without "
            "--site the global model is meant."
        )
    if personal:
        raise ValueError(
            "every site has a personal model in this run; say whose with --site: "
            f"{', '.join(sorted(personal))}."
        )
    if run.job.encrypted:
        raise ValueError(
            "this run's models are encrypted. Open one at a site first: surgagg model decrypt "
            f"{best_checkpoint(run.servers[-1])} --context client_context.tenseal --out plain.npz"
        )
    return best_checkpoint(run.servers[-1])


def _network(job: Job, own_site: bool) -> Network | None:
    if not job.has_own_site:
        settings = job.at_server
        return Network(settings.backbone, settings.image_size, settings.hidden)
    if own_site:
        return None
    raise ValueError(
        f"the sites of job {job.name!r} have a network of their own. Name their class: "
        "--own-site my.module:MySite --arg site={SITE_NAME} --arg folder=data"
    )
