"""The picture files of a site."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from PIL import Image

from cxr_phantom.drawing.anatomy import sample_anatomy, vary_exposure_of
from cxr_phantom.drawing.rendering import render
from cxr_phantom.patients.cohort import Cohort
from cxr_phantom.writers.official_layouts import SiteLayout

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
