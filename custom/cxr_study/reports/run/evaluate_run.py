"""Evaluates a finished run on every site's test split, and writes its report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pandas as pd
from rich.console import Console

from cxr_study.common.files import replace
from cxr_study.evaluation import test_split
from cxr_study.evaluation.predictions import predict
from cxr_study.evaluation.scores import score
from cxr_study.evaluation.summary_json import (
    Best,
    ClassAuroc,
    MeanAuroc,
    Model,
    SiteData,
    Splits,
    Summary,
)
from cxr_study.jobs import job_folder
from cxr_study.phantom.demo_data import demo_study
from cxr_study.reports.page.html import picture, template
from cxr_study.reports.run import run_view
from cxr_study.reports.run.example_pictures import Example, choose
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import FinishedRun
from cxr_study.training.network_facts import Network
from surgical_aggregation import __version__
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.wire import variables as wire

PHANTOM_NOTE = "They show the method's behaviour, not clinical performance."
PERSONAL_NOTE = "Every site has a personal model: 'global' stands for that model here."


def report(run: FinishedRun, folder: Path, *, title: str, console: Console) -> tuple[Summary, Path]:
    """Evaluate a finished run on every site's test split, and write its report, an HTML file.

    Raises:
        ResultsError: The run has not finished.
    """
    settings = job_folder.typed(run.job)
    network = Network(settings.backbone, settings.image_size, settings.hidden)
    tensorflow_setup.configure(tensorflow_setup.cores(), settings.seed)
    best = load(job_results.best_checkpoint(run.servers[-1]))
    personal = {
        site: load(path) for site, path in job_results.personal_checkpoints(run.states).items()
    }
    known = (best, *personal.values())
    union = wire.classes_of(chain.from_iterable(each.variables for each in known))
    site_files = run.site_files or demo_study()
    tests: list[ClassAuroc] = []
    means: list[MeanAuroc] = []
    pictures = []
    sites: dict[str, SiteData] = {}
    for site in job_folder.sites(run.job):
        console.print(f"evaluating on the test split of {site} ...", highlight=False)
        split = test_split.load(site_files / f"{site}.yaml", union, network.image_size)
        sites[site] = SiteData(
            classes=tuple(sorted(split.labelled)),
            images=_sizes(split.assignment),
            patients=_sizes(split.assignment.drop_duplicates("patient")),
        )
        models: dict[Model, Checkpoint] = {"global": personal.get(site, best)}
        if site in run.alone:
            models["local"] = load(run.alone[site])
        for name, checkpoint in models.items():
            probabilities = predict(checkpoint, network, split).probabilities
            rows, row_means = score(name, split, probabilities, union, settings.seed)
            tests += rows
            means += row_means
            if name == "global":
                pictures += choose(split, probabilities, union)
    phantom = run.site_files is None
    merged = best.manifest.get("classes", {})
    labelled = {name: [s for s, site in sites.items() if name in site.classes] for name in union}
    summary = Summary(
        title=title,
        job=json.loads((run.job / "meta.json").read_text(encoding="utf-8"))["name"],
        data="phantom" if phantom else "real",
        note=" ".join([PHANTOM_NOTE] * phantom + [PERSONAL_NOTE] * bool(personal)),
        version=__version__,
        backbone=network.backbone,
        image_size=network.image_size,
        seed=settings.seed,
        num_rounds=job_results.rounds_run(*run.servers),
        stopped_early=job_results.stopped_early(*run.servers),
        personal=bool(personal),
        wall_seconds=job_results.wall_seconds(*run.servers),
        best=Best(best.manifest["best"]["round"], best.manifest["best"]["value"]),
        union=union,
        sites=sites,
        trained_by={  # where the server does not know (a personal head): by the sites that label it
            name: tuple(merged[name]["sites"] if name in merged else labelled[name])
            for name in union
        },
        rounds=job_results.rounds(*run.servers, personal=bool(personal)),
        refusals=job_results.refusals(*run.servers),
        test=tuple(tests),
        means=tuple(means),
    )
    return summary, write_report(summary, pictures, folder)


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
        summary=summary, view=run_view, examples=shown, figures=run_figures
    )


def _sizes(table: pd.DataFrame) -> Splits:
    rows = table["split"].value_counts()
    return Splits(*(int(rows.get(name, 0)) for name in ("train", "validation", "test")))
