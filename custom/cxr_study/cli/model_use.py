"""The commands that use a model: `surgagg predict`, `export`, `model show` and `package`."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from typer import Option

from cxr_study.cli import options
from cxr_study.cli.common import console, say
from cxr_study.cli.options import command
from cxr_study.common.wording import counted, format_rounds
from cxr_study.models import OUTPUT, Format
from surgical_aggregation.wire.untrusted_text import one_line

if TYPE_CHECKING:
    import pandas as pd

    from cxr_study.models.images_to_predict import FoundImage, ReadImage
    from cxr_study.models.loaded_model import LoadedModel
    from surgical_aggregation.checkpoints.model_facts import ModelFacts
    from surgical_aggregation.site.contract.site import Split

    Chunks = Generator[tuple[dict[int, ReadImage], pd.DataFrame], None, None]

app, model_app = typer.Typer(), typer.Typer()


@command(app)
def predict(
    model: options.Model,
    images: list[Path],
    *,
    out: Path,
    site: options.Site = None,
    explain: Annotated[int, Option(min=0)] = 0,
    site_file: Path | None = None,
    raw: Annotated[bool, Option("--raw")] = False,
    force: bool = False,
    own_site: options.OwnSite = None,
    arguments: options.Arguments = None,
) -> None:
    """Predict images: a row per image, a column per class.

    A file that cannot be read is skipped and listed, with the reason, in a second csv next to
    --out. An image that does not look like a frontal chest radiograph is predicted, and flagged in
    the column 'flags'.

    Options:
        images: Image files (also DICOM), folders, or csv files that name them; with your own Site
            its splits: train, validation, test.
        out: Table to write, .csv.
        explain: Write a page per image with heat maps of this number of classes; 0: none.
        site_file: Site file of the images' site; its 'bits' apply to them, else those that a run
            assumes.
        raw: Do not apply the model's calibration.
        force: Replace --out if it exists.

    Example:
        surgagg predict runs/demo images --out p.csv
        surgagg predict best.npz a.png b.dcm --out e.csv --explain 3
        surgagg predict runs/skin/surgical test --out t.csv --own-site skin_photos:SkinPhotos
            --arg site=north --arg folder=data
    """
    if out.suffix != ".csv":
        raise ValueError(f"predictions need a file .csv; got {out}.")
    if out.exists() and not force:
        raise FileExistsError(
            f"predictions need a new file; {out} exists. Give another --out, or --force."
        )
    loaded = _opened(model, site, own_site, arguments)
    calibration = None if raw else loaded.calibration
    import pandas as pd

    from cxr_study.common.files import atomic_path, atomic_write
    from cxr_study.data.sites.site_data import estimate_bits, load_labels
    from cxr_study.data.sites.site_file import read_site_file
    from cxr_study.models.images_to_predict import find
    from cxr_study.models.loaded_model import FLAGS, NEVER_LEARNED

    began = time.monotonic()
    if own_site is None:
        bits = None
        if site_file is not None:
            home = read_site_file(site_file)
            bits = home.bits or estimate_bits(load_labels(home))
        chunks = _predicted(loaded, find(images), bits, calibrated=not raw)
    else:
        splits = _splits(images, explain)
        chunks = (({}, loaded.predict_own(split, calibrated=not raw)) for split in splits)
    pages, skipped = (out.with_name(f"{out.stem}{end}") for end in ("-explained", ".problems.csv"))
    flags: Counter[str] = Counter()
    flagged, explained, number, problems = 0, 0, 0, []
    with (
        closing(chunks),
        atomic_path(out) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="") as file,
    ):
        for chunk, table in chunks:  # without a float_format, floats are read back bit for bit
            table.to_csv(file, index=False, header=not file.tell(), lineterminator="\n")
            number += len(table)
            problems += [(one.image, one.problem) for one in chunk.values() if one.pixels is None]
            for text in table[FLAGS]:
                kinds = {flag.partition(":")[0] for flag in text.split("; ")} - {"", NEVER_LEARNED}
                flagged += bool(kinds)
                flags.update(sorted(kinds))
            if explain:
                from cxr_study.reports.explanation import explanation_page

                explained += len(explanation_page.write(loaded, chunk, table, explain, pages))
    rate = f", {number / (time.monotonic() - began):.0f} a second" if number >= 100 else ""
    say(f"model        {loaded.file}: {counted(len(loaded.classes), 'class', 'classes')}")
    say(f"predictions  {out}: {counted(number, 'image')}{rate}")
    for name, why in loaded.facts.never_learned.items():
        say(f"never learned  {name}: {why}; ignore its column")
    if calibration is not None:
        say(
            f"calibrated   {len(calibration.classes)} of {len(loaded.classes)} classes, on "
            f"{', '.join(calibration.sites)}; thresholds by {calibration.threshold_rule}"
        )
    else:
        say("calibrated   no; see surgagg model calibrate" if not raw else "calibrated   no")
    if flagged:
        shown = ", ".join(f"{times} {flag}" for flag, times in flags.most_common())
        say(f"flagged      {flagged} ({shown}); see the column '{FLAGS}'")
    skipped.unlink(missing_ok=True)
    if problems:
        left_out = pd.DataFrame(problems, columns=["image", "problem"])
        atomic_write(skipped, left_out.to_csv(index=False, lineterminator="\n"))
        say(f"skipped      {len(problems)}, first {': '.join(problems[0])}. All: {skipped}")
    if explained:
        say(f"explained    {counted(explained, 'page')} in {pages}")
    say("Research use only; not for diagnosis.")
    if not number:
        raise ValueError("no image could be predicted.")


def _predicted(
    loaded: LoadedModel, found: list[FoundImage], bits: int | None, *, calibrated: bool
) -> Chunks:
    """Read and predict image files in chunks, with a progress bar."""
    from cxr_study.common import progress

    done = 0
    with progress.bar("predicting images") as report:
        for chunk, table in loaded.predict_chunks(found, calibrated=calibrated, bits=bits):
            yield chunk, table
            done += len(chunk)
            report(done, len(found))


def _splits(named: list[Path], explain: int) -> list[Split]:
    """Splits of the user's own `Site` to predict, from the arguments of the command."""
    from surgical_aggregation.site.contract.site import Split

    known, asked = get_args(Split), [str(split) for split in named]
    if explain or not {*asked} <= {*known}:
        raise ValueError(
            f"with your own Site, give splits ({', '.join(known)}), without --explain; got "
            f"{', '.join(asked)}."
        )
    return [split for split in known if split in asked]


@command(app)
def export(
    model: options.Model,
    *,
    to: Format,
    out: Path | None = None,
    site: options.Site = None,
    own_site: options.OwnSite = None,
    arguments: options.Arguments = None,
) -> None:
    """Export a model that runs without this package: pixels in, probabilities out.

    Resizing and normalization are part of the model: it takes grey images of any size, 0 black to
    255 white. With your own Site, it takes the input of its network. The class names, in the order
    of the output, are in the file's metadata.

    Options:
        to: Format; savedmodel is a folder for TensorFlow.
        out: New file or folder. Default: named like the model, in the current folder.

    Example:
        surgagg export runs/demo --to keras
        surgagg export best.npz --to onnx --out chest.onnx
    """
    from cxr_study.models import export_model

    loaded = _opened(model, site, own_site, arguments)
    path = out or export_model.default_name(loaded.file, to)
    export_model.export(loaded, to, path)
    say(f"model   {loaded.file}: {counted(len(loaded.classes), 'class', 'classes')}")
    given = export_model.metadata(loaded)["input"]
    uint8 = "uint8 or " * (to == "keras" and own_site is None)
    say(f"input   {given['name']} {given['layout']}, {uint8}float32")
    say(f"output  {OUTPUT} (images, {len(loaded.classes)})")
    say(f"{to:<7} {path}: {_megabytes(path):.1f} MB")
    if loaded.calibration is not None:
        say("The output is not calibrated, unlike predict's; the curves are in the metadata.")


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


@command(model_app)
def show(
    model: options.Model,
    site: options.Site = None,
    json_: Annotated[bool, Option("--json")] = False,
) -> None:
    """Show what is known about a model: classes, network, who trained it, its metrics at sites.

    Options:
        json_: Print JSON, for programs.

    Example:
        surgagg model show runs/demo
        surgagg model show best.npz --json
    """
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
        say(f"Not recorded by the program that wrote it: {lacking}.")


def _about(facts: ModelFacts) -> dict[str, object]:
    """Facts of a model for a table; None: not recorded."""
    network, side = facts.network, facts.network.get("image_size")
    hidden = network.get("hidden")
    between = f"hidden layer of {hidden}" if hidden else "no hidden layer"
    body = f"{network.get('backbone')}, {between}"
    # The manifest of a personal model lists only its own site.
    contributed = {} if facts.site else facts.contributed
    kind = "global model" if facts.classes else "body without a head: to start from"
    sites = [f"{site} ({format_rounds(of)})" for site, of in contributed.items()]
    return {
        "model": f"personal model of {facts.site}" if facts.site else kind,
        "classes": len(facts.classes) or None,
        "network": body if "backbone" in network else None,
        "input": f"{side} x {side} pixels" if side else None,
        **{name: one_line(json.dumps(of)) for name, of in network.get("input", {}).items()},
        "strategy": facts.strategy,
        "rounds": facts.round,
        "contributed": "; ".join(sites) or None,
        "made": facts.created and f"on {facts.created} by version {facts.version}",
        "initial body": facts.initial_body_sha256 and f"sha256 {facts.initial_body_sha256[:16]}…",
    }


@command(model_app)
def package(
    model: options.Model,
    *,
    out: Path,
    site: options.Site = None,
    own_site: options.OwnSite = None,
    arguments: options.Arguments = None,
) -> None:
    """Create a folder for a model hub: card, Keras file, reference image and check.

    The card is the one that the run wrote next to the model, or is made from the model's own
    facts. One that was written before the model's calibration is refused. Before publication, a
    person must answer what it marks TO FILL IN, in card.yaml next to the model.

    Options:
        out: New folder for the package.

    Example:
        surgagg model package runs/demo --out chest-model
    """
    from cxr_study.models.export_model import CHECKPOINT
    from cxr_study.models.export_model import package as write
    from cxr_study.reports.card import model_card

    loaded = _opened(model, site, own_site, arguments)
    written = loaded.file.with_name(model_card.FILE)
    source = model_card.CardSource(out.name, loaded.facts, calibration=loaded.calibration)
    card = model_card.markdown(source)
    if written.is_file():
        calibration = model_card.calibration_part(card)
        card = written.read_text(encoding="utf-8")
        if calibration not in card:
            raise ValueError(
                f"{written} needs to state the model's calibration; it was written before. Write "
                "it again: surgagg report <run>; or remove it, to have it made without the run."
            )
    card = card.replace(f'load_model("{loaded.file.name}")', f'load_model("{CHECKPOINT}")')
    card = model_card.fill_in_answers(card, loaded.file.parent)
    write(loaded, card, out)
    left = card.count(f"**{model_card.TO_FILL}:")
    say(f"package  {out}: {', '.join(sorted(path.name for path in out.iterdir()))}")
    say(f"check    python {out / 'check.py'}")
    say(f"card     {out / 'README.md'}: {counted(left, 'place')} to fill in")


def _opened(
    model: Path, site: str | None, own_site: str | None, arguments: list[str] | None
) -> LoadedModel:
    """Load a model of this application's sites, or of the user's own `Site`."""
    from cxr_study.models.loaded_model import load_model
    from cxr_study.training.own_site import own_site as made

    return load_model(model, site, None if own_site is None else made(own_site, arguments or []))
