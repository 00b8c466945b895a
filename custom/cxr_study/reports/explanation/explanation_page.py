"""A page for one predicted image: its probabilities, and where the evidence lies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from PIL import Image

from cxr_study.common.files import replace
from cxr_study.data.images.decoding import decode
from cxr_study.models.loaded_model import FLAGS, NEVER_LEARNED
from cxr_study.models.prediction.calibration_file import POSITIVE
from cxr_study.models.prediction.image_reader import ReadImage
from cxr_study.reports.page.html import address, template

if TYPE_CHECKING:
    from cxr_study.models.loaded_model import LoadedModel

SIDE = 384  # pixels of a picture on the page
_STRONGEST = 0.6  # how much of the picture the hottest place hides


@dataclass(frozen=True)
class Finding:
    """A class of one image.

    Attributes:
        probability: As the table has it.
        threshold: From where the class counts as positive; None: it has no threshold.
        picture: The image with the class's heat over it, as bright as the class is probable, as a
            `data:` address; "": not explained.
        blank: Whether it is explained, and no place of the image spoke for the class.
    """

    name: str
    probability: float
    threshold: float | None
    picture: str = ""
    blank: bool = False

    @property
    def positive(self) -> bool:
        """Whether it reaches its threshold."""
        return self.threshold is not None and self.probability >= self.threshold


def write(
    model: LoadedModel,
    chunk: Mapping[int, ReadImage],
    table: pd.DataFrame,
    most: int,
    folder: Path,
) -> list[Path]:
    """Write a page for each image of a chunk that could be read.

    Args:
        model: That predicted it.
        chunk: Its images, see `LoadedModel.predict_chunks`.
        table: Their predictions, likewise.
        most: How many classes, the most probable first, get a heat map; of those with a
            calibration, and of the others, for the two cannot be ranked together. None of those
            that the model never learned.
        folder: Where the pages go; they are named like the images.

    Returns:
        The pages.
    """
    page = template(__package__)
    thresholds = _thresholds(model, table)
    pages = []
    for (_, row), at in zip(table.iterrows(), table.index.tolist(), strict=True):
        read = chunk[at]
        findings = _findings(model, read, row, thresholds, most)
        path = folder / f"{file_name(read.image, at)}.html"
        text = page.render(
            image=read.image,
            model=model,
            flags="; ".join(_doubts(row[FLAGS])),
            never_learned=model.never_learned,
            picture=address(Image.fromarray(_picture(read))),
            side=SIDE,
            findings=findings,
            explained=[finding for finding in findings if finding.picture],
            calibrated=bool(thresholds),
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, text)
        pages.append(path)
    return pages


def file_name(image: str, at: object) -> str:
    """The name of an image's page, by its position: `a/b.png`, the 8th image, has `7-a-b.png`."""
    return re.sub(r"[^\w.-]+", "-", f"{at}-{image}")


def _thresholds(model: LoadedModel, table: pd.DataFrame) -> dict[str, float]:
    """Class -> threshold, where the table applied the model's calibration."""
    if model.calibration is None:
        return {}
    classes = model.calibration.file.classes
    return {n: of.threshold for n, of in classes.items() if f"{n}{POSITIVE}" in table}


def _findings(
    model: LoadedModel, read: ReadImage, row: pd.Series, thresholds: dict[str, float], most: int
) -> list[Finding]:
    """Calibrated classes, then the others, most probable first."""
    from cxr_study.models.prediction.grad_cam import heat_maps

    ranked = row[list(model.classes)].astype(float).sort_values(ascending=False)
    names = sorted(map(str, ranked.index), key=lambda name: name not in thresholds)
    learned = [name for name in names if name not in model.never_learned]
    calibrated = [name for name in learned if name in thresholds]
    others = [name for name in learned if name not in thresholds]
    explained = [*calibrated[:most], *others[:most]]
    heats = {}
    if read.pixels is not None:
        heats = heat_maps(model.local, read.pixels, explained, model.network.normalisation)
    picture = _picture(read)
    return [
        Finding(
            name,
            float(ranked[name]),
            thresholds.get(name),
            address(_over(picture, ranked[name] * heats[name])) if name in heats else "",
            blank=name in heats and not heats[name].any(),
        )
        for name in names
    ]


def _doubts(flags: str) -> list[str]:
    """Flags of an image, without those that every image of the model has."""
    return [flag for flag in flags.split("; ") if not flag.startswith(NEVER_LEARNED)]


def _picture(read: ReadImage) -> np.ndarray:
    """The image as the network sees it, with more pixels: uint8 (SIDE, SIDE)."""
    return decode(Path(read.path).read_bytes(), SIDE, bits=read.bits).pixels


def _over(picture: np.ndarray, heat: np.ndarray) -> Image.Image:
    """Heat, from 0 to 1, over a grey picture."""
    from matplotlib import colormaps

    large = np.asarray(
        Image.fromarray(heat.astype(np.float32)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    )
    large = large.clip(0, 1)[..., None]
    colours = 255 * colormaps["inferno"](large[..., 0])[..., :3]
    hidden = _STRONGEST * large
    mixed = (1 - hidden) * picture[..., None] + hidden * colours
    return Image.fromarray(mixed.round().astype(np.uint8))
