"""The command that trains without a federation: `surgagg baseline`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cxr_studies.baseline import BEST_FILE, ROUNDS_FILE, baseline_run
from cxr_studies.baseline.baseline_run import BaselineRun
from cxr_study.cli import options
from cxr_study.cli.common import check_data, check_folder, clear_folder, console, joined, say, split
from cxr_study.cli.options import command
from cxr_study.jobs.job import check_names
from cxr_study.jobs.presets import JobError, parse, with_preset

if TYPE_CHECKING:
    from cxr_study.evaluation.summary_json import Group, MeanAuroc

app = typer.Typer()


@command(app)
def baseline(
    method: str,
    out: Path = Path("runs/baseline"),
    sites: str = "nih,chexpert",
    site_files: options.SiteFiles = None,
    phantom: options.Phantom = False,
    initial_body: options.InitialBody = None,
    preset: options.Preset = None,
    strategy: str | None = None,
    rounds: Annotated[int | None, Option(min=1)] = None,
    patience: Annotated[int | None, Option(min=0)] = None,
    settings: options.Settings = None,
    force: options.Force = False,
) -> None:
    """Train without a federation, with the recipe of the jobs, for comparison.

    individual: each site alone, with its own classes. centralised: all sites' images in one place;
    what a site does not label counts as absent. centralised-partial: it does not count.

    Rounds, the choice of the best model and early stopping are those of a federated run.

    Options:
        method: individual, centralised or centralised-partial.
        out: New folder for the models.
        sites: Names, by comma.
        strategy: fedavg: batch normalisation trains; fedbn+ and fixbn freeze its statistics.
        rounds: Rounds, at most.
        patience: Stop after so many without a better model; 0: no.

    Example:
        surgagg baseline individual --phantom --out runs/individual
    """
    named = {"strategy": strategy, "num_rounds": rounds, "patience": patience}
    known = {name: value for name, value in named.items() if value is not None}
    check_data(site_files, phantom)
    names = split(sites)
    check_names(names)
    runs = list(_runs(method, names, out, joined(preset), settings or [], known))
    mark = str((runs[0].out / ROUNDS_FILE).relative_to(out))
    check_folder(out, force, mark, [site_files, initial_body])
    from cxr_study.common import offered_data, progress
    from cxr_study.runs.run_request import check_body
    from cxr_study.runs.simulated_run import prepare

    folder = offered_data.site_files(site_files)
    for run in runs:  # what is wrong with a site shows before another one is trained
        prepare(folder, run.sites, run.settings["image_size"])
    check_body(site_files, initial_body)
    clear_folder(out, force, mark)
    for run in runs:
        with progress.bar(f"{method}, {', '.join(run.sites)}: rounds") as report:
            baseline_run.train(replace(run, site_files=folder, initial_body=initial_body), report)
    _print(runs, folder)


def _write_card(run: BaselineRun) -> Path:
    """Write the model card of a run's best model into the run's folder; its path."""
    from cxr_study.reports.card.model_card import CardSource, write
    from surgical_aggregation.checkpoints.checkpoint import load
    from surgical_aggregation.checkpoints.model_facts import facts_of

    trained = f"One hospital, {run.sites[0]}, trained it alone."
    if run.method != "individual":
        where = " and ".join(run.sites)
        trained = f"It was trained without a federation, on the images of {where} in one place."
    name, facts = f"{run.method}, {', '.join(run.sites)}", facts_of(load(run.out / BEST_FILE))
    source = CardSource(name, facts, settings=run.settings, trained=trained, chest=True)
    return write(source, run.out)


def _runs(
    method: str,
    sites: tuple[str, ...],
    out: Path,
    preset: str | None,
    given: Sequence[str],
    named: Mapping[str, object],
) -> Iterator[BaselineRun]:
    """One run, or with "individual" one for each site."""
    shared, per_site = parse(given)
    alone = sites if method == "individual" else ()
    shared, per_site = with_preset(preset, {**shared, **named}, per_site, alone)
    if others := [site for site in per_site if site not in alone]:
        raise JobError(
            f"a setting is given for {others[0]!r} alone, which no run is of; give it for all of "
            "them, or train that site with 'individual'."
        )
    groups: list[tuple[str, ...]] = [(site,) for site in alone] or [sites]
    for group in groups:
        settings = baseline_run.all_settings(method, {**shared, **per_site.get(group[0], {})})
        yield BaselineRun(method, group, settings, out / group[0] if alone else out)


def _print(runs: Sequence[BaselineRun], site_files: Path) -> None:
    """Print AUROCs of the best models on the test splits, and the paths of models and cards."""
    from rich.text import Text

    from cxr_study.reports.run import run_view
    from cxr_study.reports.run.console import table

    measured = [row for run in runs for row in _measured(run, site_files)]
    known: tuple[Group, ...] = ("labelled", "unlabelled", "all")
    groups = [group for group in known if any(group in means for _, _, means in measured)]
    title = f"{runs[0].method}: mean AUROC of the best model on test splits (95 % interval)"
    rows = [
        (site, best_round, *(run_view.mean_text(means.get(group)) for group in groups))
        for site, best_round, means in measured
    ]
    headings = ("tested at", "best round", *(run_view.COLUMNS[group] for group in groups))
    console.print(table(title, headings, rows))
    console.print(Text("Research only, not for diagnosis.", style="dim"))
    for run in runs:
        say(f"models   {run.out}")
        say(f"card     {_write_card(run)}")


def _measured(
    run: BaselineRun, site_files: Path
) -> Iterator[tuple[str, int, dict[Group, MeanAuroc]]]:
    """Results of a run's best model on each site's test split.

    Yields:
        Site, round of the best model, and group of classes -> its mean AUROC there.
    """
    from cxr_study.evaluation import test_split
    from cxr_study.evaluation.predictions import Predictor
    from cxr_study.evaluation.scores import score
    from cxr_study.training.network import Network
    from surgical_aggregation.checkpoints.checkpoint import load
    from surgical_aggregation.wire import variables as wire

    best = load(run.out / BEST_FILE)
    union = wire.classes_of(best.variables)
    network = Network(run.settings["backbone"], run.settings["image_size"], run.settings["hidden"])
    predictor = Predictor(network)
    for site in run.sites:
        images = test_split.load(site_files / f"{site}.yaml", union, network.image_size)
        _, means = score("local", predictor.predict(best, images), union, run.settings["seed"])
        own = run.method == "individual"  # all its classes are those that it labels
        found = {mean.classes: mean for mean in means if not own or mean.classes == "labelled"}
        yield site, best.manifest["best"]["round"], found
