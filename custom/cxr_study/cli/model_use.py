"""The commands about a trained model in use: `surgagg model show`, `evaluate`, `calibrate` ..."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from cxr_study.cli.run import SiteFiles, check_data, console, say, split
from cxr_study.common.wording import counted, listed, rounds_listed
from cxr_study.reports.page.numbers import count, interval
from surgical_aggregation.wire.untrusted_text import one_line

if TYPE_CHECKING:
    from cxr_study.evaluation.summary_json import ClassAuroc
    from cxr_study.models.loaded_model import LoadedModel
    from cxr_study.models.prediction.calibration_file import CalibrationFile
    from surgical_aggregation.checkpoints.model_facts import ClassTraining, ModelFacts

Model = Annotated[Path, Argument(help="A run's folder, or a checkpoint such as best.npz.")]
Phantom = Annotated[
    bool, Option("--phantom", help="The phantom study's sites, in place of --site-files.")
]
Site = Annotated[str | None, Option(help="Whose personal model, after fedbn or personalised.")]


def add_to(app: typer.Typer) -> None:
    """Make them commands of a group."""
    app.command(
        epilog="Example:  surgagg model show runs/demo      surgagg model show best.npz --json"
    )(show)
    app.command(
        epilog="Example:  surgagg model calibrate runs/run --site-files sites --sites a "
        "--sensitivity 0.9"
    )(calibrate)
    app.command(epilog="Example:  surgagg model evaluate c.npz --site-files sites --sites c")(
        evaluate
    )
    app.command(epilog="Example:  surgagg model package runs/demo --out chest-model")(package)


def show(
    model: Model,
    site: Site = None,
    json_: Annotated[bool, Option("--json", help="For programs.")] = False,
) -> None:
    """Say what a model is: classes, network, who trained it, what sites measured."""
    from cxr_study.models.model_choice import choose
    from surgical_aggregation.checkpoints.checkpoint import load
    from surgical_aggregation.checkpoints.model_facts import CONTRACT, facts_of

    file, _ = choose(model, site)
    facts = facts_of(load(file))
    if json_:
        console.print_json(json.dumps({"file": str(file), **dataclasses.asdict(facts)}))
        return
    say(str(file))
    console.print(_facts_table(facts))
    if not facts.classes:
        return
    console.print(_class_table(facts))
    if facts.validation:
        say(f"AUROC of round {facts.validation.round} on the sites' validation splits.")
    if facts.lacks:
        lacking = "; ".join(CONTRACT[key] for key in facts.lacks)
        say(f"Written by an older version or another program, it does not say: {lacking}.")


def _facts_table(facts: ModelFacts) -> Table:
    from cxr_study.training.backbones import BACKBONES
    from cxr_study.training.network_facts import input_facts

    made = Table.grid(padding=(0, 2))
    network, input_ = facts.network, facts.network.get("input", {})
    name = network.get("backbone")
    known = name in BACKBONES and input_ == input_facts(name)
    hidden = network.get("hidden")
    body = f"{name}, {f'hidden layer of {hidden}' if hidden else 'no hidden layer'}"
    rows = {
        "model": _kind(facts),
        "classes": len(facts.classes) or None,
        "network": body if "backbone" in network else None,
        "input": f"{network['image_size']} x {network['image_size']} pixels"
        if "image_size" in network
        else None,
        "resizing": _resizing(input_["resizing"]) if known else None,
        "normalisation": _normalisation(input_["normalisation"]) if known else None,
        "input of its own": None if known or not input_ else one_line(json.dumps(input_)),
        "strategy": facts.strategy,
        "rounds": facts.round,
        "contributed": _contributed(facts),
        "made": facts.created and f"on {facts.created} by version {facts.version}",
        "initial body": facts.initial_body_sha256 and f"sha256 {facts.initial_body_sha256[:16]}…",
    }
    for name, value in rows.items():
        if value is not None:
            made.add_row(Text(name, "dim"), Text(str(value)))
    return made


def _contributed(facts: ModelFacts) -> str | None:
    """Which sites are in a model, in which rounds; a personal one's manifest has its own alone."""
    known = {} if facts.site else facts.contributed
    return "; ".join(f"{site} ({rounds_listed(of)})" for site, of in known.items()) or None


def _kind(facts: ModelFacts) -> str:
    if facts.site:
        return f"personal model of {facts.site}"
    return "global model" if facts.classes else "body without a head: to start from"


def _resizing(facts: dict[str, Any]) -> str:
    words = ["antialiased"] * facts["antialias"] + [facts["method"]]
    return f"{' '.join(words)}, aspect ratio {'kept' if facts['keep_aspect_ratio'] else 'not kept'}"


def _normalisation(facts: dict[str, Any]) -> str:
    return f"(pixel / {facts['scale']} - {facts['mean']}) / {facts['sd']}"


def _class_table(facts: ModelFacts) -> Table:
    sites = sorted(facts.validation.auroc) if facts.validation else []
    made = Table()
    for name in ("class", "trained by", "rounds"):
        made.add_column(name, overflow="fold")
    for site in sites:
        made.add_column(Text(site), justify="right", overflow="fold")
    for name in facts.classes:
        training = facts.trained.get(name)
        scores = [facts.validation.auroc[s].get(name) for s in sites] if facts.validation else []
        made.add_row(
            Text(name),
            Text(_trained_by(training)),
            Text(_rounds(training)),
            *("-" if score is None else f"{score:.3f}" for score in scores),
        )
    return made


def _trained_by(training: ClassTraining | None) -> str:
    if training is None:
        return "not said"
    by = listed(training.sites)
    if training.imported:
        by = f"{by or 'others'} (imported)"
    return f"{by}; never learned: {training.never_learned}" if training.never_learned else by


def _rounds(training: ClassTraining | None) -> str:
    if training is None or not training.rounds:
        return "not said"
    spans: dict[tuple[str, ...], list[str]] = {}
    for span in training.rounds:
        text = str(span.first) if span.first == span.last else f"{span.first} to {span.last}"
        spans.setdefault(span.sites, []).append(text)
    if len(spans) == 1:
        return ", ".join(next(iter(spans.values())))
    return "; ".join(f"{', '.join(texts)} by {len(by)}" for by, texts in spans.items())


def evaluate(
    model: Model,
    site_files: SiteFiles = None,
    sites: Annotated[str, Option(help="Whose test splits, by comma.")] = "",
    phantom: Phantom = False,
    site: Site = None,
    out: Annotated[Path | None, Option(help="Table of the AUROCs to write, csv.")] = None,
) -> None:
    """Measure a model on sites' own labelled test images: AUROC with intervals by patient."""
    check_data(site_files, phantom)
    names = _site_names(sites, site)
    import pandas as pd

    from cxr_study.common import offered_data
    from cxr_study.evaluation import test_split
    from cxr_study.evaluation.predictions import Predictor
    from cxr_study.evaluation.scores import score
    from cxr_study.models.loaded_model import load_model
    from surgical_aggregation.site.training.tensorflow_setup import import_quietly

    loaded = load_model(model, site)
    folder = offered_data.site_files(site_files)
    _say_seen(loaded, folder, names, ["test"])
    import_quietly()
    predictor = Predictor(loaded.network)
    rows, means = [], []
    for name in names:
        part = test_split.load(folder / f"{name}.yaml", loaded.classes, loaded.network.image_size)
        for unknown in sorted(part.labelled - {*loaded.classes}):
            say(f"{name}: {_no_such_class(unknown, loaded.classes)}")
        said = predictor.predict(loaded.checkpoint, part).probabilities
        found, over = score("global", part, said, loaded.classes, seed=0)
        rows += found
        means += [row for row in over if row.classes == "all"]
    console.print(_auroc_table(rows))
    for row in means:
        say(f"mean at {row.site}: {interval(row.auroc, row.low, row.high)} over {row.over}")
    if out is not None:
        columns = ["site", "class_name", "auroc", "low", "high", "positives", "negatives", "labels"]
        out.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame([dataclasses.asdict(row) for row in rows])[columns].to_csv(out, index=False)
        say(f"table    {out}")


def _no_such_class(name: str, classes: Sequence[str]) -> str:
    """Say that a model lacks a site's class, and which of its own may be the same finding."""
    from cxr_study.data.labels.vocabulary import one_finding

    text = f"the model has no class '{name}'"
    if alike := [each for each in classes if one_finding(name, each)]:
        return f"{text}; if {alike[0]} is the same finding: merges: {{{alike[0]}: [{name}]}}"
    return f"{text}, and none that resembles it"


def _auroc_table(rows: list[ClassAuroc]) -> Table:
    table = Table(
        title="AUROC on test images (95 % interval, bootstrap by patient)", title_justify="left"
    )
    for name in ("class", "site", "AUROC"):
        table.add_column(name, overflow="fold")
    for name in ("positive", "negative"):
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        value = "not defined" if row.auroc is None else interval(row.auroc, row.low, row.high)
        table.add_row(
            Text(row.class_name), Text(row.site), value, count(row.positives), count(row.negatives)
        )
    return table


def _say_seen(
    loaded: LoadedModel, folder: Path, sites: Sequence[str], splits: Sequence[str]
) -> None:
    from cxr_study.models.labelled_predictions import seen_in_training

    for note in seen_in_training(loaded, folder, sites, splits):
        say(note)


def _site_names(sites: str, site: str | None) -> tuple[str, ...]:
    names = split(sites) or ((site,) if site else ())
    if not names:
        raise typer.BadParameter("say whose images: --sites a,b", param_hint="--sites")
    return names


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
) -> None:
    """Calibrate a model's probabilities on validation images; its weights stay as they are.

    The calibration (Platt's) is a file beside the model, and `surgagg predict` uses it. A class
    needs 20 positive and 20 negative images, and probabilities that rise with its labels; others
    stay uncalibrated, and are named. Thresholds are tested on the sites' test images.
    """
    from cxr_study.common import offered_data
    from cxr_study.common.files import replace
    from cxr_study.models import calibrate_model
    from cxr_study.models.labelled_predictions import of_site
    from cxr_study.models.loaded_model import load_model
    from cxr_study.models.prediction.calibration_file import as_json, beside

    check_data(site_files, phantom)
    loaded = load_model(model, site)
    names = _site_names(sites, site)
    path = beside(loaded.file)
    if path.exists() and not force:
        raise FileExistsError(
            f"the model has a calibration, {path}. Say --force to replace it, or move it away."
        )
    folder = offered_data.site_files(site_files)
    _say_seen(loaded, folder, names, ["validation", "test"])
    files = [folder / f"{name}.yaml" for name in names]
    said = [of_site(loaded, file, "validation") for file in files]
    tests = [of_site(loaded, file, "test", needed=False) for file in files]
    made = calibrate_model.calibrate(loaded.checkpoint, said, tests, sensitivity=sensitivity)
    replace(path, as_json(made))
    console.print(_calibration_table(made))
    say(
        "ECE: expected calibration error; after: of images whose patients the calibration had not "
        "seen."
    )
    console.print(_threshold_table(made))
    say(
        "Sensitivity and specificity are too good on the images that the threshold was chosen on, "
        "hence beside them: on test images. In brackets: 95 % intervals, bootstrap by patient."
    )
    own = {n: why for n, why in made.refused.items() if why != calibrate_model.NO_LABEL}
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


def _calibration_table(made: CalibrationFile) -> Table:
    title = f"{', '.join(made.sites)}: validation images"
    table = Table(title=title, title_justify="left", box=None)  # eighty columns hold it, just so
    table.add_column("class", overflow="fold")
    for heading in ("images", "positive", "ECE before", "ECE after"):
        table.add_column(heading, justify="right")
    for name, of in made.classes.items():
        errors = (f"{error:.3f}" for error in (of.ece_before, of.ece_after))
        table.add_row(Text(name), str(of.images), str(of.positives), *errors)
    return table


def _threshold_table(made: CalibrationFile) -> Table:
    table = Table(title=f"Thresholds by {made.threshold_rule}", title_justify="left", box=None)
    table.add_column("class", overflow="fold")
    for heading in ("threshold", "sensitivity", "test", "specificity", "test"):
        table.add_column(heading, min_width=11)  # no end of an interval is cut
    for name, of in made.classes.items():
        shares = (
            (of.threshold, *of.threshold_ends),
            (of.sensitivity, None, None),
            of.test_sensitivity,
            (of.specificity, None, None),
            of.test_specificity,
        )
        told = (interval(*share, 2).replace(" to ", "\N{EN DASH}") for share in shares)
        table.add_row(Text(name), *(each.replace(" (", "\n(") for each in told))
    return table


def package(
    model: Model,
    out: Annotated[Path, Option(help="New folder for the package.")],
    site: Site = None,
) -> None:
    """Make a folder that can be put on a model hub: card, Keras file, reference image and check.

    The card is the one that the run wrote beside the model, or one of what the model itself says.
    What is marked TO FILL IN there, a person must write into card.yaml beside the model before it
    is published.
    """
    from cxr_study.models.loaded_model import load_model
    from cxr_study.models.packaging.package_model import package as write
    from cxr_study.models.prediction.calibration_file import current_calibration
    from cxr_study.reports.card import card_answers, model_card

    loaded = load_model(model, site)
    written = loaded.file.with_name(model_card.FILE)
    if written.is_file():
        card = written.read_text(encoding="utf-8")
    else:
        calibration = current_calibration(loaded.file, loaded.checkpoint)
        source = model_card.CardSource(out.name, loaded.facts, calibration=calibration)
        card = model_card.markdown(source)
    card = card_answers.answered(card, loaded.file.parent)
    write(loaded, card, out)
    left = card.count(f"**{card_answers.TO_FILL}:")
    say(f"package  {out}: {', '.join(sorted(path.name for path in out.iterdir()))}")
    say(f"check    python {out / 'check.py'}")
    say(f"card     {out / 'README.md'}: {counted(left, 'place')} to fill in")
