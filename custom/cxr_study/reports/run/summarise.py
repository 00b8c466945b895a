"""A finished run as a summary: its records, and what was measured of its models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cxr_study.evaluation.summary_json import (
    Best,
    ClassAuroc,
    Difference,
    MeanAuroc,
    RunWarning,
    SiteCalibration,
    SiteData,
    SubgroupAuroc,
    Summary,
)
from cxr_study.jobs.presets import preset_of
from cxr_study.reports.run.run_warnings import started_from_drawings
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import FinishedRun
from surgical_aggregation import __version__
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.wire.headers import CANDIDATE

PHANTOM_NOTE = "They show the method's behaviour, not clinical performance."
ELSEWHERE_NOTE = (
    "Every site measured the model itself, on the classes that it labels; there are no intervals, "
    "and nothing on the classes that it does not label."
)
PERSONAL_NOTE = "Every site has a personal model: 'global' stands for that model here."

_NOTES = {"phantom": PHANTOM_NOTE, "elsewhere": ELSEWHERE_NOTE, "real": ""}


@dataclass(frozen=True)
class Measured:
    """What was measured of a run's models on the sites' test splits; see `Summary`."""

    data: Literal["phantom", "real", "elsewhere"]
    union: tuple[str, ...]
    sites: Mapping[str, SiteData]
    test: tuple[ClassAuroc, ...]
    means: tuple[MeanAuroc, ...]
    personal: bool
    subgroups: tuple[SubgroupAuroc, ...] = ()
    calibration: tuple[SiteCalibration, ...] = ()
    differences: tuple[Difference, ...] = ()
    warnings: tuple[RunWarning, ...] = ()


def summarise(run: FinishedRun, best: Checkpoint, measured: Measured, title: str) -> Summary:
    """Put together what a report says.

    Raises:
        ResultsError: The run has not finished.
    """
    settings = run.job.at_server
    network = dict(best.manifest)  # what models of sites of their own say of it, if anything
    if not run.job.has_own_site:
        network |= {"backbone": settings.backbone, "image_size": settings.image_size}
    trained = best.manifest.get("classes", {})
    last = job_results.last_manifest(run.servers[-1]) or best.manifest
    made = last.get("round", job_results.rounds_run(*run.servers))
    labelled = {
        name: [s for s, site in measured.sites.items() if name in site.classes]
        for name in measured.union
    }
    notes = [_NOTES[measured.data], PERSONAL_NOTE if measured.personal else ""]
    return Summary(
        title=title,
        job=run.job.name,
        data=measured.data,
        note=" ".join(filter(None, notes)),
        version=__version__,
        backbone=network.get("backbone", "the sites' own"),
        image_size=network.get("image_size"),
        seed=settings.seed,
        num_rounds=made,
        stopped_early=job_results.stopped_early(*run.servers),
        personal=measured.personal,
        wall_seconds=job_results.wall_seconds(*run.servers),
        best=Best(
            best.manifest["best"]["round"],
            best.manifest["best"]["value"],
            best.manifest["best"].get(CANDIDATE, ""),
        ),
        union=measured.union,
        sites=dict(measured.sites),
        trained_by={  # where the server does not know (a personal head): by the sites that label it
            name: tuple(trained[name]["sites"] if name in trained else labelled[name])
            for name in measured.union
        },
        rounds=job_results.rounds(*run.servers, personal=measured.personal, made=made),
        refusals=job_results.refusals(*run.servers),
        test=measured.test,
        means=measured.means,
        differences=measured.differences,
        subgroups=measured.subgroups,
        calibration=measured.calibration,
        planned_rounds=last.get("planned_rounds"),
        warnings=measured.warnings,
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
