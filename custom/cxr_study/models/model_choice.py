"""Which file a person means who names a run or a file, and a site."""

from __future__ import annotations

from pathlib import Path

from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import FinishedRun, RunFolderError, run_of
from cxr_study.runs.job_results import best_checkpoint, personal_checkpoints
from cxr_study.training import BEST_FILE
from cxr_study.training.network_facts import Network


class ModelChoiceError(ValueError):
    """A path, or a site, names no model, or more than one."""


def choose(path: Path, site: str | None = None) -> tuple[Path, Network | None]:
    """The file of a model, and the network that its run's job names (None: a file alone).

    Args:
        path: A checkpoint; the folder of a run or of a downloaded job, for its best model; or any
            folder with a best.npz.
        site: Whose personal model; None: the global one.

    Raises:
        ModelChoiceError: There is no such model.
        ResultsError: The run has not finished.
    """
    if path.is_file():
        if site is not None:
            raise ModelChoiceError(
                f"a site's model is found in the folder of a run; {path} is a file. Give the "
                "folder, or that site's site_best.npz without --site."
            )
        return path, None
    if not path.is_dir():
        raise ModelChoiceError(
            f"a model is needed: a run's folder, or a checkpoint; {path} is neither."
        )
    try:
        run = run_of(path)
    except RunFolderError:
        file = path / BEST_FILE
        if site is not None or not file.is_file():
            raise ModelChoiceError(
                f"the folder of a run, or one with a {BEST_FILE}, is needed; {path} is neither."
            ) from None
        return file, None
    return _model_of(run, site), _network(run.job)


def _model_of(run: FinishedRun, site: str | None) -> Path:
    personal = personal_checkpoints(run.states)
    if site is not None:
        if site in personal:
            return personal[site]
        sites = ", ".join(sorted(personal)) or "none"
        raise ModelChoiceError(
            f"{site} has no personal model in this run; sites that have one: {sites}. Without "
            "--site the global model is meant."
        )
    if personal:
        raise ModelChoiceError(
            "every site has a personal model in this run; say whose with --site: "
            f"{', '.join(sorted(personal))}."
        )
    if run.job.encrypted:
        raise ModelChoiceError(
            "this run's models are encrypted. Open one at a site first: surgagg model decrypt "
            f"{best_checkpoint(run.servers[-1])} --context client_context.tenseal --out plain.npz"
        )
    return best_checkpoint(run.servers[-1])


def _network(job: Job) -> Network:
    if job.has_own_site:
        raise ModelChoiceError(
            f"the sites of job {job.name!r} have a network of their own, which this "
            "application cannot build. Load the model's file (surgical_aggregation.checkpoints"
            ".checkpoint.load) and give its variables to your site's model()."
        )
    settings = job.at_server
    return Network(settings.backbone, settings.image_size, settings.hidden)
