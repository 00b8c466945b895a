"""A finished run's report: evaluated here, or as its sites measured it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import pandas as pd
from rich.console import Console

from cxr_study.common import offered_data
from cxr_study.common.files import replace
from cxr_study.data.sites.site_data import SiteLabels, check_disjoint
from cxr_study.evaluation import test_split
from cxr_study.evaluation.predictions import Predictor
from cxr_study.evaluation.scores import compare, score, score_calibration, score_subgroups
from cxr_study.evaluation.summary_json import (
    ClassAuroc,
    Difference,
    MeanAuroc,
    Model,
    SiteCalibration,
    SiteData,
    Splits,
    SubgroupAuroc,
    Summary,
)
from cxr_study.models.prediction.calibration_file import current_calibration
from cxr_study.reports.card import model_card
from cxr_study.reports.card.model_card import CardSource
from cxr_study.reports.page.html import picture, template
from cxr_study.reports.run import contributors, cross_site_results, run_view
from cxr_study.reports.run.example_pictures import Example, choose
from cxr_study.reports.run.notices import notices
from cxr_study.reports.run.run_warnings import warnings
from cxr_study.reports.run.summarise import Measured, summarise
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import FinishedRun
from cxr_study.training.network_facts import Network
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.wire import variables as wire

TABLE = "federated_test.csv"
"""In a report's folder: what the sites measured; see `cross_site_results`."""


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
    table = None
    if (server / cross_site_results.RESULTS_FILE).is_file():
        table = folder / TABLE
        cross_site_results.write_csv(cross_site_results.read(server), table)
    best = load(job_results.best_checkpoint(server))
    if run.elsewhere or run.job.encrypted:
        measured = cross_site_results.measured(run)
        pictures: list[Example] = []
    else:
        measured, pictures = _evaluated(run, best, console)
    summary = summarise(run, best, measured, title)
    page = write_report(summary, pictures, folder)
    return Report(summary, page, table, _write_cards(run, best, summary))


def _write_cards(run: FinishedRun, best: Checkpoint, summary: Summary) -> tuple[Path, ...]:
    """Write a card beside the global model, if it has a head, and beside each personal model."""
    models = dict(job_results.personal_checkpoints(run.states))
    named = {f"{summary.title}: {site}": (load(path), path) for site, path in models.items()}
    if wire.classes_of(best.variables):
        named = {summary.title: (best, job_results.best_checkpoint(run.servers[-1])), **named}
    filters = job_results.filters(*run.servers)
    cards = []
    for name, (checkpoint, path) in named.items():
        source = CardSource(
            name,
            facts_of(checkpoint),
            summary,
            run.job.settings,
            current_calibration(path, checkpoint),
            filters=filters,
            chest=not run.job.has_own_site,
            best=run_view.best_model(summary),
            compared=run_view.comparisons(summary),
        )
        cards.append(model_card.write(source, path.parent))
    return tuple(cards)


def _evaluated(
    run: FinishedRun, best: Checkpoint, console: Console
) -> tuple[Measured, list[Example]]:
    """Evaluate a run's models on the test splits here."""
    settings = run.job.at_server
    network = Network(settings.backbone, settings.image_size, settings.hidden)
    tensorflow_setup.configure(tensorflow_setup.cores(), settings.seed)
    predictor = Predictor(network)
    personal = {
        site: load(path) for site, path in job_results.personal_checkpoints(run.states).items()
    }
    known = (best, *personal.values())
    union = wire.classes_of(chain.from_iterable(each.variables for each in known))
    site_files = offered_data.site_files(run.site_files)
    tests: list[ClassAuroc] = []
    means: list[MeanAuroc] = []
    differences: list[Difference | None] = []
    subgroups: list[SubgroupAuroc] = []
    calibration: list[SiteCalibration] = []
    pictures: list[Example] = []
    sites: dict[str, SiteData] = {}
    unvalidated: dict[str, Sequence[str]] = {}
    sources: list[SiteLabels] = []
    for site in run.job.sites:
        console.print(f"evaluating on the test split of {site} ...", highlight=False)
        split = test_split.load(site_files / f"{site}.yaml", union, network.image_size)
        sites[site] = SiteData(
            classes=tuple(sorted(split.labelled)),
            images=_sizes(split.assignment),
            patients=_sizes(split.assignment.drop_duplicates("patient")),
            training=dict(split.training),
        )
        unvalidated[site] = split.unvalidated
        if split.source is not None:
            sources.append(split.source)
        models: dict[Model, Checkpoint] = {"global": personal.get(site, best)}
        if run.published is not None:
            models["published"] = load(run.published)
        if run.before is not None and not personal:
            models["before"] = load(run.before)
        if site in run.alone:
            models["local"] = load(run.alone[site])
        predicted = {
            name: predictor.predict(checkpoint, split).probabilities
            for name, checkpoint in models.items()
        }
        for name, probabilities in predicted.items():
            rows, row_means = score(name, split, probabilities, union, settings.seed)
            tests += rows
            means += row_means
        ours = predicted["global"]
        if "local" in predicted:
            differences.append(compare(split, ours, predicted["local"], settings.seed))
        if "before" in predicted:
            before = predicted["before"]
            differences += [
                compare(split, ours, before, settings.seed, against="before", group=group)
                for group in ("labelled", "unlabelled")
            ]
        pictures += choose(split, ours, union)
        subgroups += score_subgroups(split, ours)
        calibration += score_calibration(split, ours)
    data: Literal["phantom", "real"] = "phantom" if run.site_files is None else "real"
    measured = Measured(
        data,
        union,
        sites,
        tuple(tests),
        tuple(means),
        bool(personal),
        tuple(subgroups),
        tuple(calibration),
        tuple(each for each in differences if each is not None),
        tuple(
            warnings(
                best,
                on_phantom=data == "phantom",
                without_mixed_precision=settings.mixed_precision
                and not tensorflow_setup.half_precision(),
                unvalidated=unvalidated,
                unfinished=run.unfinished,
                look_alikes=job_results.look_alikes(*run.servers),
                other_splits=run.other_splits,
                breaks=run.breaks,
                shared_patients=check_disjoint(sources),
            )
        ),
    )
    return measured, pictures


def write_report(summary: Summary, examples: Sequence[Example], folder: Path) -> Path:
    """Write `report.html`, whose path it returns, and `summary.json`, each in one step.

    Raises:
        SummaryError: The summary does not have the documented form.
        ValueError: An example's image is not a square of 8-bit grey values.
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
    return template(__package__, auroc=run_view.interval, percent=run_view.percent).render(
        summary=summary,
        view=run_view,
        who=contributors,
        limits=notices,
        examples=shown,
        figures=run_figures,
    )


def _sizes(table: pd.DataFrame) -> Splits:
    rows = table["split"].value_counts()
    return Splits(*(int(rows.get(name, 0)) for name in ("train", "validation", "test")))
