"""The command that writes a model for other programs: `surgagg export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from cxr_study.cli.model_use import Arguments, Model, OwnSite, Site, opened
from cxr_study.cli.run import say
from cxr_study.common.wording import counted
from cxr_study.models import Format

EPILOG = (
    "Example:  surgagg export runs/demo --to keras      "
    "surgagg export best.npz --to onnx --out chest.onnx"
)


def export(
    model: Model,
    to: Annotated[Format, Option(help="savedmodel: a folder for TensorFlow.")],
    out: Annotated[
        Path | None, Option(help="New file or folder. Default: named like the model, here.")
    ] = None,
    site: Site = None,
    own_site: OwnSite = None,
    arguments: Arguments = None,
) -> None:
    """Write a model that runs without this package: pixels in, probabilities out.

    Resizing and normalisation are inside: grey images of any size, 0 black to 255 white. Of a Site
    of your own the input is what its network takes. The names of the classes, in the order of the
    output, are in the file's metadata.
    """
    from cxr_study.models import export_model

    loaded = opened(model, site, own_site, arguments)
    path = out or export_model.default_name(loaded.file, to)
    export_model.export(loaded, to, path)
    say(f"model   {loaded.file}: {counted(len(loaded.classes), 'class', 'classes')}")
    given = export_model.metadata(loaded)["input"]
    uint8 = "uint8 or " * (to == "keras" and own_site is None)
    say(f"input   {given['name']} {given['layout']}, {uint8}float32")
    say(f"output  {export_model.OUTPUT} (images, {len(loaded.classes)})")
    say(f"{to:<7} {path}: {_megabytes(path):.1f} MB")
    if loaded.calibration is not None:
        say("The output is not calibrated, as predict's is; the curves are in the file's metadata.")


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6
