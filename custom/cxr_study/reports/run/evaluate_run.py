"""A finished run's report: evaluated here, or as its sites measured it; summarised, written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console

from cxr_study.common import offered_data
from cxr_study.common.files import atomic_write
from cxr_study.evaluation.predictions import Predictor
from cxr_study.evaluation.scores import SiteEvaluation, evaluate_site
from cxr_study.evaluation.summary_json import Best, Data, Model, Summary
from cxr_study.jobs.methods import method_title
from cxr_study.jobs.presets import preset_of
from cxr_study.models.calibration_file import CalibrationFile, current_calibration
from cxr_study.reports.card import model_card
from cxr_study.reports.card.model_card import CardSource
from cxr_study.reports.page.html import picture, template
from cxr_study.reports.run import clinical_view, cross_site_results, run_view
from cxr_study.reports.run.clinical_view import GLOBAL, NO_FILES, ModelFiles
from cxr_study.reports.run.comparisons import comparisons
from cxr_study.reports.run.examples import Example, choose
from cxr_study.reports.run.notices import notices
from cxr_study.reports.run.run_warnings import started_from_drawings, warnings_of
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import FinishedRun
from cxr_study.training.network import Network
from surgical_aggregation import __version__
from surgical_aggregation.aggregation.batch_norm_strategy import has_personal
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import CANDIDATE

_NOTES = {
    "phantom": "They show the method's behaviour, not clinical performance.",
    "elsewhere": "Every site measured the model itself, on the classes that it labels; there are "
    "no intervals, and nothing on the classes that it does not label.",
    "real": "",
}
"""Whose data were used -> what the results can show, in words."""

_PERSONAL = "Every site has a personal model; 'global' means that model here."


@dataclass(frozen=True)
class Report:
    """What was written of a run, and its numbers.

    Attributes:
        summary: The numbers, as in `summary.json` in the folder of the page.
        page: report.html.
        table: What the sites measured on their own test splits, csv; None: they did not.
        cards: The model cards, each in the folder of its model.
    """

    summary: Summary
    page: Path
    table: Path | None
    cards: tuple[Path, ...]


def report(run: FinishedRun, folder: Path, console: Console) -> Report:
    """Report a finished run: HTML page, summary, table, and the models' cards.

    Its best model is evaluated on every site's test split, with intervals; where the sites' data
    are elsewhere, or the model is encrypted, what the sites measured themselves is reported.

    Args:
        run: Which run.
        folder: For page, summary and table; made if needed.
        console: Where it states which site is being evaluated.

    Returns:
        The files, and the summary. Cards hold the calibration next to each model, if it has one.

    Raises:
        ResultsError: The run has not finished, or no site has measured its model.
        ValueError: A site file is unusable, or a person's answers for a card are.
    """
    server = run.servers[-1]
    best = load(job_results.best_checkpoint(server))
    models = _reported_models(run, best)
    here = not run.facts.elsewhere and not run.job.encrypted
    table = None
    if not here or (server / job_results.CROSS_SITE).is_file():
        results = cross_site_results.read(server)
        table = cross_site_results.write_csv(results, folder)
    if here:
        own = {site: checkpoint for site, (checkpoint, _) in models.items() if site != GLOBAL}
        evaluations, personal = _evaluated(run, best, own, console), bool(own)
    else:
        head, sites = wire.classes_of(best.variables), run.job.sites
        evaluations = cross_site_results.evaluations(results, head, sites)
        personal = not head or has_personal(str(best.manifest.get("strategy")))
    data: Data = "elsewhere" if not here else "phantom" if run.facts.site_files is None else "real"
    summary = summarise(run, best, evaluations, data=data, personal=personal)
    known = [each.predictions for each in evaluations if each.predictions is not None]
    examples = [example for each in known for example in choose(each, summary.union)]
    calibrations = {site: current_calibration(path, of) for site, (of, path) in models.items()}
    cards = _write_cards(run, models, calibrations, summary)
    shown = {
        site: (quote(Path(os.path.relpath(card, folder)).as_posix()), card.read_text("utf-8"))
        for site, card in cards
    }
    files = ModelFiles(calibrations, shown, chest=not run.job.has_own_site)
    page = write_report(summary, examples, folder, files)
    return Report(summary, page, table, tuple(card for _, card in cards))


def _evaluated(
    run: FinishedRun, best: Checkpoint, personal: Mapping[str, Checkpoint], console: Console
) -> list[SiteEvaluation]:
    """Evaluate a run's models on the test splits here.

    Args:
        run: Which run; its models for comparison are evaluated as well.
        best: Its global model.
        personal: Site -> its personal model, which is evaluated in place of the global one. Where
            there are any, no model is evaluated for a site without one.
        console: Where it states which site is being evaluated.

    Returns:
        One for each site of the job, in its order.
    """
    settings = run.job.at_server
    tensorflow_setup.configure(tensorflow_setup.cores(), settings.seed)
    predictor = Predictor(Network(settings.backbone, settings.image_size, settings.hidden))
    known = (best, *personal.values())
    union = wire.classes_of(chain.from_iterable(each.variables for each in known))
    site_files = offered_data.site_files(run.facts.site_files)
    evaluations = []
    for site in run.job.sites:
        console.print(f"evaluating on the test split of {site} ...", highlight=False)
        files: dict[Model, Path | None] = {
            "published": run.published,
            "before": None if personal else run.before,
            "local": run.alone.get(site),
        }
        models = {name: load(file) for name, file in files.items() if file is not None}
        if not personal or site in personal:  # never another's body with its own name
            models["global"] = personal.get(site, best)
        file = site_files / f"{site}.yaml"
        evaluations.append(evaluate_site(file, models, union, predictor, settings.seed))
    return evaluations


def summarise(
    run: FinishedRun,
    best: Checkpoint,
    evaluations: Sequence[SiteEvaluation],
    *,
    data: Data,
    personal: bool,
) -> Summary:
    """Put together the numbers of a report; see `Summary`.

    Args:
        run: Which run; its record gives rounds, refusals and durations.
        best: Its best model; the manifest gives who trained which class.
        evaluations: On its sites' test splits, all of the same classes, which are the union.
        data: See `Summary`.
        personal: See `Summary`.

    Raises:
        ResultsError: The run has not finished.
        SplitError: Two sites share a patient.
    """
    settings = run.job.at_server
    network = dict(best.manifest)  # as far as it states these, of models of own sites
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
    return Summary(
        title=f"{method_title(run.job.name)}: {', '.join(run.job.sites)}",
        job=run.job.name,
        data=data,
        note=f"{_NOTES[data]} {_PERSONAL * personal}".strip(),
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
    """How a run was made: heading -> value, in words.

    Args:
        run: With the facts of its start, as far as known.
        best: Its best model; the manifest's facts are used where the run has none.
        strategy: What happens to batch norm, the setting's value.
    """
    body = best.manifest.get("initial_body_sha256")
    start = f"sha256 {body[:12]}…" if body else "not known"
    return {
        "Strategy": strategy,
        "Preset": preset_of(run.job.settings, run.facts.preset),
        "Initial body": "pre-trained on drawings" if started_from_drawings(best) else start,
        "Date": run.facts.date or best.manifest.get("created", "not known"),
        "Code": run.facts.code or best.manifest.get("version", "not known"),
    }


def _reported_models(run: FinishedRun, best: Checkpoint) -> dict[str, tuple[Checkpoint, Path]]:
    """The models that a report is about, with their files.

    Returns:
        `GLOBAL` -> the global model, if it has a head; and site -> its personal model.
    """
    models = {}
    if wire.classes_of(best.variables):
        models[GLOBAL] = best, job_results.best_checkpoint(run.servers[-1])
    personal = job_results.personal_checkpoints(run.states)
    return models | {site: (load(path), path) for site, path in personal.items()}


def _write_cards(
    run: FinishedRun,
    models: Mapping[str, tuple[Checkpoint, Path]],
    calibrations: Mapping[str, CalibrationFile | None],
    summary: Summary,
) -> list[tuple[str, Path]]:
    """Write a card next to each model.

    Args:
        run: Which run.
        models: See `_reported_models`.
        calibrations: By the same keys.
        summary: Of the run.

    Returns:
        Key of the model, and its card.
    """
    filters = job_results.filters(*run.servers)
    cards = []
    for site, (checkpoint, path) in models.items():
        measured = summary if site == GLOBAL else summary.of_site(site)
        source = CardSource(
            f"{summary.title}: {site}" if site else summary.title,
            facts_of(checkpoint),
            measured,
            run.job.settings,
            calibrations[site],
            filters=filters,
            chest=not run.job.has_own_site,
            best=run_view.best_model(summary),
            compared=comparisons(measured),
            file=path.name,
            body=model_card.averaged_body(checkpoint),
        )
        cards.append((site, model_card.write(source, path.parent)))
    return cards


def write_report(
    summary: Summary, examples: Sequence[Example], folder: Path, files: ModelFiles = NO_FILES
) -> Path:
    """Write `report.html` and `summary.json`, both or, where either cannot be made, none.

    Args:
        summary: Every number of the page except those at thresholds.
        examples: Test images to show.
        folder: For both files; made if needed.
        files: Calibrations and cards of the models. Default: none is known.

    Returns:
        The page.

    Raises:
        ValueError: The summary does not have the documented form, or an example's image is not a
            square of 8-bit grey values.
    """
    text, page = summary.to_json(), render(summary, examples, files)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / "summary.json", text)
    atomic_write(folder / "report.html", page)
    return folder / "report.html"


def render(summary: Summary, examples: Sequence[Example], files: ModelFiles = NO_FILES) -> str:
    """Make the HTML page of a report, which loads nothing from outside.

    Arguments are those of `write_report`; the texts come from `clinical_view`, `run_view` and
    `notices`, the figures from `run_figures`.
    """
    from cxr_study.reports.run import run_figures  # here, for not every report needs matplotlib

    shown = [(example, picture(example.image, example.site)) for example in examples]
    views = {"clinical": clinical_view, "view": run_view, "figures": run_figures}
    page, found = template(__package__), list(notices(summary))
    return page.render(summary=summary, files=files, found=found, examples=shown, **views)
