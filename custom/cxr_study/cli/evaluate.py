"""The commands `surgagg model evaluate` and `calibrate`, which need labelled images."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cxr_study.cli import options
from cxr_study.cli.common import check_data, console, say, split
from cxr_study.cli.options import command
from cxr_study.common.wording import counted, join_names

if TYPE_CHECKING:
    from cxr_study.models.calibration_file import CalibrationFile
    from cxr_study.models.loaded_model import LoadedModel
    from surgical_aggregation.site.contract.site import Site as AnySite

app = typer.Typer()
Phantom = Annotated[
    bool, Option("--phantom", help="The sites of the phantom, instead of --site-files.")
]


@command(app)
def calibrate(
    model: options.Model,
    site_files: options.SiteFiles = None,
    sites: str = "",
    phantom: Phantom = False,
    site: options.Site = None,
    sensitivity: float | None = None,
    force: Annotated[bool, Option("--force")] = False,
    own_site: options.OwnSite = None,
    arguments: options.Arguments = None,
) -> None:
    """Calibrate a model's probabilities on validation images; its weights stay unchanged.

    The calibration (Platt scaling) is written next to the model, and `surgagg predict` applies it.
    A class needs 20 positive and 20 negative images, and probabilities that rise with its labels;
    others stay uncalibrated and are listed. Thresholds are tested on the sites' test images.

    Options:
        sites: Sites whose validation splits are used, by comma.
        sensitivity: Sensitivity that thresholds reach, e.g. 0.9. Default: highest F1 instead.
        force: Replace an existing calibration.

    Example:
        surgagg model calibrate runs/run --site-files sites --sites a --sensitivity 0.9
    """
    from cxr_study.common.files import atomic_write
    from cxr_study.models import calibration_file, fit_calibration

    fit_calibration.check_sensitivity(sensitivity)
    splits = ("validation", "test")
    loaded, sources = _opened(model, site, site_files, sites, phantom, own_site, arguments, *splits)
    path = calibration_file.calibration_path(loaded.file)
    if path.exists() and not force:
        raise FileExistsError(
            f"the model has a calibration, {path}. Use --force to replace it, or move it away."
        )
    of_sites = sources.items()
    validation = [loaded.predict_site(source, name, "validation") for name, source in of_sites]
    tests = [loaded.predict_site(it, name, "test", needed=False) for name, it in of_sites]
    made = fit_calibration.calibrate(loaded.checkpoint, validation, tests, sensitivity=sensitivity)
    atomic_write(path, calibration_file.as_json(made))
    _print_tables(made)
    say(
        "ECE: expected calibration error; after: on images of patients that were not used to fit "
        "the calibration."
    )
    say(
        "Sensitivity and specificity are optimistic on the validation images, which the threshold "
        "was chosen on; next to them: on the test images of all these sites. In brackets: 95 % "
        "intervals, bootstrap by patient; at 0 and 1 Clopper-Pearson on the number of patients."
    )
    own = {n: why for n, why in made.refused.items() if why != fit_calibration.NO_LABEL}
    for name, why in own.items():
        say(f"{name}: not calibrated; {why}")
    if unlabelled := [name for name in made.refused if name not in own]:
        say(f"Not calibrated, without a label here: {join_names(unlabelled)}.")
    worse = [name for name, of in made.classes.items() if of.ece_after > of.ece_before]
    if worse:
        say(f"Calibration error not smaller than before: {join_names(worse)}.")
    say(f"calibration  {path}: {counted(len(made.classes), 'class', 'classes')}")
    if model.is_dir():
        say(f"surgagg report {model} writes it into the model card.")


def _print_tables(made: CalibrationFile) -> None:
    from cxr_study.reports.page.numbers import interval
    from cxr_study.reports.run.console import table

    images, thresholds = [], []
    for name, of in made.classes.items():
        errors = (f"{error:.3f}" for error in (of.ece_before, of.ece_after))
        images.append((name, of.images, of.positives, *errors))
        shares = (
            (of.threshold, *of.threshold_ends),
            (of.sensitivity, None, None),
            of.test_sensitivity,
            (of.specificity, None, None),
            of.test_specificity,
        )
        cells = (interval(*share, 2).replace(" to ", "\N{EN DASH}") for share in shares)
        thresholds.append((name, *(cell.replace(" (", "\n(") for cell in cells)))
    first = ("class", "images", "positive", "ECE before", "ECE after")
    title = f"{', '.join(made.sites)}: validation images"
    console.print(table(title, first, images, box=None))  # just fits in 80 columns
    second = ("class", "threshold", "sensitivity", "test", "specificity", "test")
    title = f"Thresholds by {made.threshold_rule}"
    console.print(table(title, second, thresholds, 11, box=None))  # keeps intervals complete


@command(app)
def evaluate(
    model: options.Model,
    site_files: options.SiteFiles = None,
    sites: str = "",
    phantom: Phantom = False,
    site: options.Site = None,
    out: Path | None = None,
    own_site: options.OwnSite = None,
    arguments: options.Arguments = None,
) -> None:
    """Evaluate a model on labelled test images of sites: AUROC with intervals by patient.

    With your own Site, each image counts as a patient.

    Options:
        sites: Sites whose test splits are used, by comma.
        out: Table of the AUROCs to write, csv.

    Example:
        surgagg model evaluate c.npz --site-files sites --sites c
        surgagg model evaluate runs/skin/surgical --sites north,south
            --own-site skin_photos:SkinPhotos --arg site={SITE_NAME} --arg folder=data
    """
    loaded, sources = _opened(model, site, site_files, sites, phantom, own_site, arguments, "test")
    import pandas as pd

    from cxr_study.evaluation import test_split
    from cxr_study.evaluation.scores import score
    from cxr_study.reports.run.console import auroc_table

    rows, means = [], []
    for name, source in sources.items():
        if isinstance(source, Path):
            images = test_split.load(source, loaded.classes, loaded.network.image_size)
            found = loaded.predictions(images)
        else:
            found = loaded.predict_site(source, name, "test")
        for unknown in sorted(found.images.labelled - {*loaded.classes}):
            say(f"{name}: {_no_such_class(unknown, loaded.classes)}")
        aurocs, over = score("global", found, loaded.classes, seed=0)
        rows += aurocs
        means += [mean for mean in over if mean.classes == "all"]
    console.print(auroc_table(rows, means))
    if out is not None:
        columns = ["site", "class_name", "auroc", "low", "high", "positives", "negatives", "labels"]
        out.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame([dataclasses.asdict(row) for row in rows])[columns].to_csv(out, index=False)
        say(f"table    {out}")


def _opened(
    model: Path,
    site: str | None,
    site_files: Path | None,
    sites: str,
    phantom: bool,
    own_site: str | None,
    arguments: list[str] | None,
    *splits: str,
) -> tuple[LoadedModel, dict[str, Path | AnySite]]:
    """Load a model and find the sites whose images it will predict.

    Prints a note where the model may have been trained with images of these splits.

    Returns:
        The model, and site -> its site file or own `Site`.
    """
    from cxr_study.common import offered_data
    from cxr_study.models.loaded_model import load_model, seen_in_training
    from cxr_study.training.own_site import own_sites
    from surgical_aggregation.site.training.tensorflow_setup import import_quietly

    names = split(sites) or ((site,) if site else ())
    if not names:
        raise typer.BadParameter("names of sites are needed: --sites a,b", param_hint="--sites")
    if own_site is not None:
        import_quietly()
        own = own_sites(own_site, arguments or [], names)
        return load_model(model, site, own[names[0]]), dict(own)
    check_data(site_files, phantom, "labelled images need --site-files <folder of <site>.yaml>")
    folder = offered_data.site_files(site_files)
    loaded = load_model(model, site)
    for note in seen_in_training(loaded, folder, names, splits):
        say(note)
    import_quietly()
    return loaded, {name: folder / f"{name}.yaml" for name in names}


def _no_such_class(name: str, classes: Sequence[str]) -> str:
    """Message about a site's class that the model lacks; names classes that may be the same."""
    from cxr_study.data.labels.vocabulary import one_finding

    text = f"the model has no class '{name}'"
    if alike := [each for each in classes if one_finding(name, each)]:
        return f"{text}; if {alike[0]} is the same finding: merges: {{{alike[0]}: [{name}]}}"
    return f"{text}, and none that resembles it"
