"""A finished run as a summary: its records, what was measured of its models, and what to know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from cxr_study.common.offered_data import DRAWINGS
from cxr_study.common.wording import Notice, listed, shortened
from cxr_study.data.sites.site_data import check_disjoint
from cxr_study.evaluation.scores import SiteEvaluation
from cxr_study.evaluation.summary_json import SHARED_PATIENTS, Best, Data, Summary
from cxr_study.jobs.presets import preset_of
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import FinishedRun
from surgical_aggregation import __version__
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.checkpoints.offered_body import offered_body
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import CANDIDATE

_NOTES = {
    "phantom": "They show the method's behaviour, not clinical performance.",
    "elsewhere": "Every site measured the model itself, on the classes that it labels; there are "
    "no intervals, and nothing on the classes that it does not label.",
    "real": "",
}
_PERSONAL = "Every site has a personal model: 'global' stands for that model here."


def summarise(
    run: FinishedRun,
    best: Checkpoint,
    evaluations: Sequence[SiteEvaluation],
    title: str,
    *,
    data: Data,
    personal: bool,
) -> Summary:
    """Put together what a report says; see `Summary`.

    Args:
        run: Which run.
        best: Its best model.
        evaluations: On its sites' test splits, all of the same classes, which are the union.
        title: Of the report.
        data: See `Summary`.
        personal: See `Summary`.

    Raises:
        ResultsError: The run has not finished.
        SplitError: Two sites share a patient.
    """
    settings = run.job.at_server
    network = dict(best.manifest)  # what models of sites of their own say of it, if anything
    if not run.job.has_own_site:
        network |= {"backbone": settings.backbone, "image_size": settings.image_size}
    trained = best.manifest.get("classes", {})
    last = job_results.last_manifest(run.servers[-1]) or best.manifest
    made = last.get("round", job_results.rounds_run(*run.servers))
    union = tuple(dict.fromkeys(row.class_name for row in evaluations[0].test))
    labelled = {
        name: [each.site for each in evaluations if name in each.data.classes] for name in union
    }
    measured: dict[str, Any] = {
        name: tuple(chain.from_iterable(getattr(each, name) for each in evaluations))
        for name in ("test", "means", "differences", "subgroups", "calibration")
    }
    of_best = best.manifest["best"]
    notes = [_NOTES[data], _PERSONAL if personal else ""]
    return Summary(
        title=title,
        job=run.job.name,
        data=data,
        note=" ".join(filter(None, notes)),
        version=__version__,
        backbone=network.get("backbone", "the sites' own"),
        image_size=network.get("image_size"),
        seed=settings.seed,
        num_rounds=made,
        stopped_early=job_results.stopped_early(*run.servers),
        personal=personal,
        wall_seconds=job_results.wall_seconds(*run.servers),
        best=Best(of_best["round"], of_best["value"], of_best.get(CANDIDATE, "")),
        union=union,
        sites={each.site: each.data for each in evaluations},
        trained_by={  # where the server does not know (a personal head): by the sites that label it
            name: tuple(trained[name]["sites"] if name in trained else labelled[name])
            for name in union
        },
        rounds=job_results.rounds(*run.servers, personal=personal, made=made),
        refusals=job_results.refusals(*run.servers),
        **measured,
        planned_rounds=last.get("planned_rounds"),
        warnings=tuple(warnings_of(run, best, evaluations, data)),
        made=_made(run, best, settings.strategy),
        settings={name: str(value) for name, value in run.job.settings.items()},
        contributions=job_results.contributions(last, run.job.sites, *run.servers),
    )


def _made(run: FinishedRun, best: Checkpoint, strategy: str) -> dict[str, str]:
    """How a run was made, in words."""
    body = best.manifest.get("initial_body_sha256")
    start = f"sha256 {body[:12]}…" if body else "not known"
    return {
        "Strategy": strategy,
        "Preset": preset_of(run.job.settings, run.made.get("preset")),
        "Initial body": "pre-trained on drawings" if started_from_drawings(best) else start,
        "Date": run.made.get("date", best.manifest.get("created", "not known")),
        "Code": run.made.get("code", best.manifest.get("version", "not known")),
        "Models": str(run.servers[-1] / "models"),
    }


def started_from_drawings(best: Checkpoint) -> bool:
    """Whether a model's training began with the body that was pre-trained on drawings."""
    drawings = offered_body(DRAWINGS)
    if drawings is None:
        return False
    body = wire.split(load(drawings).variables)[0]
    return best.manifest.get("initial_body_sha256") == digest(body)


def warnings_of(
    run: FinishedRun, best: Checkpoint, evaluations: Sequence[SiteEvaluation], data: Data
) -> Iterator[Notice]:
    """Find what must be said of a run; arguments as of `summarise`.

    Raises:
        SplitError: Two sites share a patient.
    """
    if data != "phantom" and started_from_drawings(best):
        yield Notice(
            "Started from drawings.",
            "The body was pre-trained on drawn pictures, not on photographs or radiographs. For "
            "results that count: surgagg model init initial.npz --weights imagenet, and "
            "--initial-body initial.npz.",
        )
    for broke in run.breaks:
        yield Notice("Interrupted, and gone on.", f"{broke[:1].upper()}{broke[1:]}")
    if run.other_splits:
        yield Notice(
            "Tested on patients that it was trained on.",
            f"{listed(run.other_splits)}: the split is not the one of the training, so the model "
            "has seen some of these test patients, and looks better than it is.",
        )
    if shared := check_disjoint([each.labels for each in evaluations if each.labels]):
        yield Notice(SHARED_PATIENTS, f"{'; '.join(shared)}.")
    if never := facts_of(best).never_learned:
        found = [f"{name} ({why})" for name, why in never.items()]
        yield Notice(
            "Never learned.",
            f"{listed(found)}. The model says the same of every image there: do not read these "
            "classes. They do not count for the choice of the best round.",
        )
    if look_alikes := job_results.look_alikes(*run.servers):
        yield Notice(
            "Classes that may be one finding.",
            f"{'; '.join(look_alikes)}. Ask the sites: as one finding it needs one name "
            "(`merges` in a site file); each of these has a column of its own.",
        )
    here = data != "elsewhere"
    if here and run.job.at_server.mixed_precision and not tensorflow_setup.half_precision():
        yield Notice(
            "No mixed precision here.",
            "The setting mixed_precision had no effect without a GPU, or a CPU with bfloat16: the "
            "sites computed in float32.",
        )
    if missing := [each for each in evaluations if each.unvalidated]:
        found = [f"{each.site}: {shortened(each.unvalidated)}" for each in missing]
        yield Notice(
            "Classes without a positive validation image.",
            f"{listed(found)}. The choice of the best round does not see them; surgagg data split "
            "makes a split in which they are, where there are patients enough.",
        )
    if run.unfinished:
        yield Notice(
            "Comparisons are left out.",
            f"These runs failed or have not ended: {listed(run.unfinished)}.",
        )
