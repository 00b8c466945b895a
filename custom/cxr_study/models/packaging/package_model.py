"""Write a folder that can be put on a model hub as it is."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path

import numpy as np
from PIL import Image

from cxr_study.models.export import export_model
from cxr_study.models.export.reference_image import TOLERANCE
from cxr_study.models.loaded_model import LoadedModel
from cxr_study.models.prediction.calibration_file import as_json
from surgical_aggregation.checkpoints.checkpoint import save


def package(model: LoadedModel, card: str, out: Path) -> None:
    """Write a model's folder.

    README.md is the card; config.json says classes, input and output; model.keras predicts without
    this package, and model.npz with it, or in further training; reference.png is a drawn chest (of
    a `Site` of somebody's own, reference.npy is noise), for which reference.json has the expected
    output, and check.py replays it. A calibration goes along.

    Args:
        model: Which model.
        card: Its model card, Markdown.
        out: New folder.

    Raises:
        FileExistsError: There is such a folder.
        ValueError: model.keras says something else than the model.
    """
    if out.exists():
        raise FileExistsError(f"a package needs a new folder; {out} exists. Give another --out.")
    out.mkdir(parents=True)
    try:
        _write(model, card, out)
    except BaseException:
        shutil.rmtree(out)
        raise


def _write(model: LoadedModel, card: str, out: Path) -> None:
    (out / "README.md").write_text(card, encoding="utf-8")
    export_model.export(model, "keras", out / "model.keras")
    save(model.checkpoint, out / "model.npz")
    facts = {"model_type": "keras", **export_model.metadata(model)}
    _write_json(out / "config.json", facts)
    if model.calibration is not None:
        text = as_json(model.calibration.file)
        (out / "model.calibration.json").write_text(text, encoding="utf-8")
    given, said = export_model.reference(model)
    if "black" in facts["input"]:
        image = "reference.png"
        Image.fromarray(given[0].astype(np.uint8)).save(out / image)
    else:
        image = "reference.npy"
        np.save(out / image, given[0])
    _write_json(
        out / "reference.json",
        {
            "image": image,
            "probabilities": dict(zip(model.classes, map(float, said[0]), strict=True)),
            "tolerance": TOLERANCE,
        },
    )
    program = resources.files(__package__).joinpath("check.py").read_text(encoding="utf-8")
    (out / "check.py").write_text(program, encoding="utf-8")


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
