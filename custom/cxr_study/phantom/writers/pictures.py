"""The picture files of a site, and damage to them as it happens in downloads and copies."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from cxr_study.phantom.drawing.anatomy import sample_anatomy, vary_exposure_of
from cxr_study.phantom.drawing.rendering import render
from cxr_study.phantom.patients.cohort import Cohort
from cxr_study.phantom.writers.official_layouts import SiteLayout

KINDS = ("truncated", "empty", "text", "black", "duplicate", "missing")
"""Kinds of damage."""

_CHUNK = 256  # images drawn before they are written


def write_pictures(
    cohort: Cohort,
    layout: SiteLayout,
    site: str,
    size: int,
    rng: np.random.Generator,
    report: Callable[[int], None],
) -> None:
    """Draw and save every image of a site; `report` is called with the number of new images."""
    images = cohort.images
    first_visits = images.drop_duplicates("person")
    patients = sample_anatomy(len(first_visits), rng)
    patients = replace(patients, female=(first_visits["sex"] == "F").to_numpy(float))
    anatomy = vary_exposure_of(patients.take(images["person"].to_numpy()), rng)
    device, lateral = images["device"].to_numpy(), images["lateral"].to_numpy()
    files = [layout.images / name for name in layout.names]
    for folder in {file.parent for file in files}:
        folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(files), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(files)))
        drawn = render(
            cohort.present[rows],
            site,
            rng,
            size,
            anatomy=anatomy.take(rows),
            devices=device[rows],
            lateral=lateral[rows],
            visibility=cohort.visibility[rows],
        )
        for row, picture in zip(rows, drawn, strict=True):
            # Each format takes its own option and ignores the other's.
            Image.fromarray(picture).save(files[row], quality=92, compress_level=1)
        report(len(rows))


def damage(
    folder: Path, images: Sequence[str], number: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Damage `number` of more image files, the kinds of damage in turn.

    Returns:
        The damaged images in their order: `image`, `damage` (one of `KINDS`), and `duplicate_of`
        ("" for other kinds).
    """
    chosen = rng.permutation(len(images))
    whole = images[chosen[number]]
    rows = []
    for count, place in enumerate(chosen[:number]):
        kind = KINDS[count % len(KINDS)]
        _damage(folder / images[place], kind, folder / whole)
        rows.append((place, images[place], kind, whole if kind == "duplicate" else ""))
    columns = ["place", "image", "damage", "duplicate_of"]
    table = pd.DataFrame(rows, columns=columns).sort_values("place", ignore_index=True)
    return table.drop(columns="place")


def _damage(file: Path, kind: str, whole: Path) -> None:
    content = file.read_bytes()
    if kind == "black":
        with Image.open(file) as picture:
            black = Image.new(picture.mode, picture.size)
        black.save(file)
    elif kind == "missing":
        file.unlink()
    else:
        damaged = {
            "truncated": content[: len(content) // 2],
            "empty": b"",
            "text": b"<html><body>403 Forbidden</body></html>\n",
            "duplicate": whole.read_bytes(),
        }
        file.write_bytes(damaged[kind])
