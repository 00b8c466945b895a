"""The commands about a trained model in use: `surgagg model show`, `evaluate`, `calibrate` ..."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.run import SiteFiles, check_data, console, say, split
from cxr_study.common.wording import counted, listed, rounds_listed
from surgical_aggregation.wire.untrusted_text import one_line

if TYPE_CHECKING:
    from cxr_study.models.loaded_model import LoadedModel
    from cxr_study.models.model_calibration import CalibrationFile
    from surgical_aggregation.checkpoints.model_facts import ModelFacts
    from surgical_aggregation.site.contract.site import Site as AnySite

Model = Annotated[Path, Argument(help="A run's folder, or a checkpoint such as best.npz.")]
Phantom = Annotated[
    bool, Option("--phantom", help="The phantom study's sites, in place of --site-files.")
]
Site = Annotated[str | None, Option(help="Whose personal model, after fedbn or personalised.")]


OwnSite = Annotated[
    str | None,
    Option(help="module:Class of your own Site, where the sites that trained the model are such."),
]
Arguments = Annotated[
    list[str] | None,
    Option("--arg", metavar="NAME=VALUE", help="Of that class; {SITE_NAME}: the site's name."),
]


def add_to(app: typer.Typer) -> None:
    """Make them commands of a group."""
    app.command(
        epilog="Example:  surgagg model show runs/demo      surgagg model show best.npz --json"
    )(show)
    app.command(
        epilog="Example:  surgagg model calibrate runs/run --site-files sites --sites a "
        "--sensitivity 0.9"
    )(calibrate)
    app.command(
        epilog="Example:  surgagg model evaluate c.npz --site-files sites --sites c      "
        "surgagg model evaluate runs/skin/surgical --sites north,south "
        "--own-site skin_photos:SkinPhotos --arg site={SITE_NAME} --arg folder=data"
    )(evaluate)
    app.command(epilog="Example:  surgagg model package runs/demo --out chest-model")(package)


def show(
    model: Model,
    site: Site = None,
    json_: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Say what a model is: classes, network, who trained it, what sites measured."""
    from cxr_study.models.loaded_model import choose
    from cxr_study.reports.card.model_card import trained_by
    from cxr_study.reports.page.numbers import figure
    from cxr_study.reports.run.console import table
    from surgical_aggregation.checkpoints.checkpoint import load
    from surgical_aggregation.checkpoints.model_facts import CONTRACT, facts_of

    file, _ = choose(model, site)
    facts = facts_of(load(file))
    if json_:
        console.print_json(json.dumps({"file": str(file), **dataclasses.asdict(facts)}))
        return
    say(str(file))
    about = [(name, value) for name, value in _about(facts).items() if value is not None]
    console.print(table(None, ("", ""), about, box=None, show_header=False))
    if not facts.classes:
        return
    measured = facts.validation.auroc if facts.validation else {}
    rows = [
        [name, trained_by(facts.trained.get(name)), *(figure(of.get(name)) for of in scores)]
        for scores in [list(measured.values())]
        for name in facts.classes
    ]
    console.print(table(None, ("class", "trained by", *measured), rows))
    if facts.validation:
        say(f"AUROC of round {facts.validation.round} on the sites' validation splits.")
    if facts.lacks:
        lacking = "; ".join(CONTRACT[key] for key in facts.lacks)
        say(f"Written by an older version or another program, it does not say: {lacking}.")


def _about(facts: ModelFacts) -> dict[str, object]:
    """What a model is; None: it does not say."""
    network, side = facts.network, facts.network.get("image_size")
    hidden = network.get("hidden")
    between = f"hidden layer of {hidden}" if hidden else "no hidden layer"
    body = f"{network.get('backbone')}, {between}"
    # A personal model's manifest has its own site alone.
    contributed = {} if facts.site else facts.contributed
    return {
        "model": f"personal model of {facts.site}"
        if facts.site
        else "global model"
        if facts.classes
        else "body without a head: to start from",
        "classes": len(facts.classes) or None,
        "network": body if "backbone" in network else None,
        "input": f"{side} x {side} pixels" if side else None,
        **{name: one_line(json.dumps(of)) for name, of in network.get("input", {}).items()},
        "strategy": facts.strategy,
        "rounds": facts.round,
        "contributed": "; ".join(f"{s} ({rounds_listed(of)})" for s, of in contributed.items())
        or None,
        "made": facts.created and f"on {facts.created} by version {facts.version}",
        "initial body": facts.initial_body_sha256 and f"sha256 {facts.initial_body_sha256[:16]}…",
    }


def evaluate(
    model: Model,
    site_files: SiteFiles = None,
    sites: Annotated[str, Option(help="Whose test splits, by comma.")] = "",
    phantom: Phantom = False,
    site: Site = None,
    out: Annotated[Path | None, Option(help="Table of the AUROCs to write, csv.")] = None,
    own_site: OwnSite = None,
    arguments: Arguments = None,
) -> None:
    """Measure a model on sites' own labelled test images: AUROC with intervals by patient.

    Of a Site of your own every image counts as a patient.
    """
    loaded, sources = _opened(model, site, site_files, sites, phantom, own_site, arguments, "test")
    import pandas as pd

    from cxr_study.evaluation import test_split
    from cxr_study.evaluation.predictions import Predictor
    from cxr_study.evaluation.scores import score
    from cxr_study.reports.run.console import auroc_table

    rows, means = [], []
    for name, source in sources.items():
        if isinstance(source, Path):
            images = test_split.load(source, loaded.classes, loaded.network.image_size)
            found = Predictor(loaded.network).predict(loaded.checkpoint, images)
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
    """A model, and the site files or own sites of whose images it is asked to predict splits.

    Says so where it may have been trained with some of these.
    """
    from cxr_study.common import offered_data
    from cxr_study.models.loaded_model import load_model, seen_in_training
    from cxr_study.training.own_site import own_sites
    from surgical_aggregation.site.training.tensorflow_setup import import_quietly

    names = split(sites) or ((site,) if site else ())
    if not names:
        raise typer.BadParameter("say whose images: --sites a,b", param_hint="--sites")
    if own_site is not None:
        import_quietly()
        own = own_sites(own_site, arguments or [], names)
        return load_model(model, site, own[names[0]]), dict(own)
    check_data(site_files, phantom)
    folder = offered_data.site_files(site_files)
    loaded = load_model(model, site)
    for note in seen_in_training(loaded, folder, names, splits):
        say(note)
    import_quietly()
    return loaded, {name: folder / f"{name}.yaml" for name in names}


def _no_such_class(name: str, classes: Sequence[str]) -> str:
    """Say that a model lacks a site's class, and which of its own may be the same finding."""
    from cxr_study.data.labels.vocabulary import one_finding

    text = f"the model has no class '{name}'"
    if alike := [each for each in classes if one_finding(name, each)]:
        return f"{text}; if {alike[0]} is the same finding: merges: {{{alike[0]}: [{name}]}}"
    return f"{text}, and none that resembles it"


def calibrate(
    model: Model,
    site_files: SiteFiles = None,
    sites: Annotated[str, Option(help="Whose validation splits, by comma.")] = "",
    phantom: Phantom = False,
    site: Site = None,
    sensitivity: Annotated[
        float | None,
        Option(help="Thresholds that reach it, e.g. 0.9. Default: thresholds of the highest F1."),
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace the model's calibration.")] = False,
    own_site: OwnSite = None,
    arguments: Arguments = None,
) -> None:
    """Calibrate a model's probabilities on validation images; its weights stay as they are.

    The calibration (Platt's) is a file beside the model, and `surgagg predict` uses it. A class
    needs 20 positive and 20 negative images, and probabilities that rise with its labels; others
    stay uncalibrated, and are named. Thresholds are tested on the sites' test images.
    """
    from cxr_study.common.files import replace
    from cxr_study.models import model_calibration

    splits = ("validation", "test")
    loaded, sources = _opened(model, site, site_files, sites, phantom, own_site, arguments, *splits)
    path = model_calibration.beside(loaded.file)
    if path.exists() and not force:
        raise FileExistsError(
            f"the model has a calibration, {path}. Say --force to replace it, or move it away."
        )
    of_sites = sources.items()
    said = [loaded.predict_site(source, name, "validation") for name, source in of_sites]
    tests = [loaded.predict_site(it, name, "test", needed=False) for name, it in of_sites]
    made = model_calibration.calibrate(loaded.checkpoint, said, tests, sensitivity=sensitivity)
    replace(path, model_calibration.as_json(made))
    _print_tables(made)
    say(
        "ECE: expected calibration error; after: of images whose patients the calibration had not "
        "seen."
    )
    say(
        "Sensitivity and specificity are too good on the images that the threshold was chosen on, "
        "hence beside them: on test images. In brackets: 95 % intervals, bootstrap by patient."
    )
    own = {n: why for n, why in made.refused.items() if why != model_calibration.NO_LABEL}
    for name, why in own.items():
        say(f"{name}: not calibrated; {why}")
    if unlabelled := [name for name in made.refused if name not in own]:
        say(f"Not calibrated, without a label here: {listed(unlabelled)}.")
    worse = [name for name, of in made.classes.items() if of.ece_after > of.ece_before]
    if worse:
        say(f"Not better than before: {listed(worse)}.")
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
        told = (interval(*share, 2).replace(" to ", "\N{EN DASH}") for share in shares)
        thresholds.append((name, *(each.replace(" (", "\n(") for each in told)))
    first = ("class", "images", "positive", "ECE before", "ECE after")
    title = f"{', '.join(made.sites)}: validation images"
    console.print(table(title, first, images, box=None))  # eighty columns hold it, just so
    second = ("class", "threshold", "sensitivity", "test", "specificity", "test")
    title = f"Thresholds by {made.threshold_rule}"
    console.print(table(title, second, thresholds, 11, box=None))  # no end of an interval is cut


def opened(
    model: Path, site: str | None, own_site: str | None, arguments: list[str] | None
) -> LoadedModel:
    """A model, of this application's sites or of a Site of somebody's own."""
    from cxr_study.models.loaded_model import load_model
    from cxr_study.training.own_site import own_site as made

    return load_model(model, site, None if own_site is None else made(own_site, arguments or []))


def package(
    model: Model,
    out: Annotated[Path, Option(help="New folder for the package.")],
    site: Site = None,
    own_site: OwnSite = None,
    arguments: Arguments = None,
) -> None:
    """Make a folder that can be put on a model hub: card, Keras file, reference image and check.

    The card is the one that the run wrote beside the model, or one of what the model itself says.
    What is marked TO FILL IN there, a person must write into card.yaml beside the model before it
    is published.
    """
    from cxr_study.models.export_model import package as write
    from cxr_study.reports.card import model_card

    loaded = opened(model, site, own_site, arguments)
    written = loaded.file.with_name(model_card.FILE)
    if written.is_file():
        card = written.read_text(encoding="utf-8")
    else:
        source = model_card.CardSource(out.name, loaded.facts, calibration=loaded.calibration)
        card = model_card.markdown(source)
    card = model_card.answered(card, loaded.file.parent)
    write(loaded, card, out)
    left = card.count(f"**{model_card.TO_FILL}:")
    say(f"package  {out}: {', '.join(sorted(path.name for path in out.iterdir()))}")
    say(f"check    python {out / 'check.py'}")
    say(f"card     {out / 'README.md'}: {counted(left, 'place')} to fill in")
