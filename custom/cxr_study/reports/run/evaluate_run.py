"""A finished run's report: evaluated here, or as its sites measured it; summarised, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console

from cxr_study.common import offered_data
from cxr_study.common.files import replace
from cxr_study.evaluation.predictions import Predictor
from cxr_study.evaluation.scores import SiteEvaluation, evaluate_site
from cxr_study.evaluation.summary_json import Best, Data, Model, Summary
from cxr_study.jobs.presets import preset_of
from cxr_study.models.model_calibration import current_calibration
from cxr_study.reports.card import model_card
from cxr_study.reports.card.model_card import CardSource
from cxr_study.reports.page.html import picture, template
from cxr_study.reports.run import cross_site_results, run_view
from cxr_study.reports.run.comparisons import comparisons
from cxr_study.reports.run.examples import Example, choose
from cxr_study.reports.run.notices import notices
from cxr_study.reports.run.run_warnings import started_from_drawings, warnings_of
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import FinishedRun
from cxr_study.training.network import Network
from surgical_aggregation import __version__
from surgical_aggregation.aggregation.strategy import has_personal
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
_PERSONAL = "Every site has a personal model: 'global' stands for that model here."


@dataclass(frozen=True)
class Report:
    """What was written of a run, and what it says.

    Attributes:
        page: report.html; `summary.json` lies beside it.
        table: What the sites measured on their own test splits, csv; None: they did not.
        cards: The model cards, beside the models.
    """

    summary: Summary
    page: Path
    table: Path | None
    cards: tuple[Path, ...]


def report(run: FinishedRun, folder: Path, *, title: str, console: Console) -> Report:
    """Report a finished run: HTML page, summary, table, and the models' cards.

    Its best model is evaluated on every site's test split, with intervals; where the sites' data
    are elsewhere, or the model is encrypted, what the sites measured themselves is reported.

    Raises:
        ResultsError: The run has not finished, or no site has measured its model.
    """
    server = run.servers[-1]
    best = load(job_results.best_checkpoint(server))
    here = not run.elsewhere and not run.job.encrypted
    table = None
    if not here or (server / cross_site_results.RESULTS_FILE).is_file():
        results = cross_site_results.read(server)
        table = cross_site_results.write_csv(results, folder)
    if here:
        models = job_results.personal_checkpoints(run.states)
        own = {site: load(path) for site, path in models.items()}
        evaluations, personal = _evaluated(run, best, own, console), bool(own)
    else:
        head, sites = wire.classes_of(best.variables), run.job.sites
        evaluations = cross_site_results.evaluations(results, head, sites)
        personal = not head or has_personal(str(best.manifest.get("strategy")))
    data: Data = "elsewhere" if not here else "phantom" if run.site_files is None else "real"
    summary = summarise(run, best, evaluations, title, data=data, personal=personal)
    known = [each.predictions for each in evaluations if each.predictions is not None]
    examples = [example for each in known for example in choose(each, summary.union)]
    page = write_report(summary, examples, folder)
    return Report(summary, page, table, _write_cards(run, best, summary))


def _evaluated(
    run: FinishedRun, best: Checkpoint, personal: Mapping[str, Checkpoint], console: Console
) -> list[SiteEvaluation]:
    """Evaluate a run's models on the test splits here."""
    settings = run.job.at_server
    tensorflow_setup.configure(tensorflow_setup.cores(), settings.seed)
    predictor = Predictor(Network(settings.backbone, settings.image_size, settings.hidden))
    known = (best, *personal.values())
    union = wire.classes_of(chain.from_iterable(each.variables for each in known))
    site_files = offered_data.site_files(run.site_files)
    evaluations = []
    for site in run.job.sites:
        console.print(f"evaluating on the test split of {site} ...", highlight=False)
        files: dict[Model, Path | None] = {
            "published": run.published,
            "before": None if personal else run.before,
            "local": run.alone.get(site),
        }
        others = {name: load(file) for name, file in files.items() if file is not None}
        models: dict[Model, Checkpoint] = {"global": personal.get(site, best), **others}
        file = site_files / f"{site}.yaml"
        evaluations.append(evaluate_site(file, models, union, predictor, settings.seed))
    return evaluations


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


def _write_cards(run: FinishedRun, best: Checkpoint, summary: Summary) -> tuple[Path, ...]:
    """Write a card beside the global model, if it has a head, and beside each personal model."""
    models = dict(job_results.personal_checkpoints(run.states))
    named = {f"{summary.title}: {site}": (load(path), path) for site, path in models.items()}
    if wire.classes_of(best.variables):
        named = {summary.title: (best, job_results.best_checkpoint(run.servers[-1])), **named}
    settings = run.job.settings
    filters = job_results.filters(*run.servers)
    cards = []
    for name, (checkpoint, path) in named.items():
        source = CardSource(
            name,
            facts_of(checkpoint),
            summary,
            settings,
            current_calibration(path, checkpoint),
            filters=filters,
            chest=not run.job.has_own_site,
            best=run_view.best_model(summary),
            compared=comparisons(summary),
        )
        cards.append(model_card.write(source, path.parent))
    return tuple(cards)


def write_report(summary: Summary, examples: Sequence[Example], folder: Path) -> Path:
    """Write `report.html`, whose path it returns, and `summary.json`, each in one step.

    Raises:
        ValueError: The summary does not have the documented form, or an example's image is not a
            square of 8-bit grey values.
    """
    text, page = summary.to_json(), render(summary, examples)
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / "summary.json", text)
    replace(folder / "report.html", page)
    return folder / "report.html"


def render(summary: Summary, examples: Sequence[Example]) -> str:
    """Make the HTML page of a report."""
    from cxr_study.reports.run import run_figures  # here, for not every report needs matplotlib

    shown = [(example, picture(example.image, example.site)) for example in examples]
    page = template(__package__)
    found, figures = list(notices(summary)), run_figures
    return page.render(summary=summary, view=run_view, found=found, examples=shown, figures=figures)
