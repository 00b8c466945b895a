"""Damage to image files, as it happens in downloads and copies."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

KINDS = ("truncated", "empty", "text", "black", "duplicate", "missing")


def damage(
    folder: Path, images: Sequence[str], number: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Damage some image files, every kind of damage as often as the others.

    Args:
        folder: Folder that the images are relative to.
        images: The images to choose from, more than `number`.
        number: How many to damage.
        rng: Source of the choice.

    Returns:
        The damaged images in their order: `image`, `damage` (one of `KINDS`: cut off in the middle,
        no bytes at all, a text in place of an image, black all over, the same bytes as another
        image, no file), and `duplicate_of` ("" for other kinds).
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
