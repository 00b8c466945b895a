"""Write the phantom to disk: sites in the official layouts of the data sets they imitate.

<root>/nih/, chexpert/, mimic/              labels and pictures; see `official_layouts`
<root>/truth/<site>.csv                     labels of all 20 findings, for evaluation only
<root>/sites/<site>.yaml, <site>_split.csv  what a site needs to train
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from cxr_phantom.drawing.anatomy import sample_anatomy, vary_exposure_of
from cxr_phantom.drawing.rendering import SITES, render
from cxr_phantom.patients.cohort import Cohort, read_reports, sample_cohort
from cxr_phantom.writers.official_layouts import (
    SiteLayout,
    write_chexpert,
    write_csv,
    write_mimic,
    write_nih,
)
from cxr_study.common.files import atomic_path
from cxr_study.data import readers
from cxr_study.data.labels.label_table import FRONTAL
from cxr_study.data.labels.vocabulary import UNION_CLASSES
from cxr_study.data.sites.patient_split import SCHEME, split_patients
from cxr_study.data.sites.site_file import write_site_file
from cxr_study.data.sites.split_file import write_split

_CHUNK = 256  # images drawn before they are written


class PhantomError(ValueError):
    """The phantom cannot be written as asked."""


def write_phantom(
    root: Path,
    *,
    images_per_site: int = 2000,
    size: int = 64,
    seed: int = 0,
    sites: Sequence[str] = ("nih", "chexpert"),
    rare_at_least: float = 0.1,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write pictures, labels, truth, splits and site files.

    The folder appears complete or not at all. The same arguments and library versions give the same
    bytes on one and the same processor, and a site's do not depend on which others are written. On
    another processor a few pixels are one grey level lighter or darker.

    Args:
        root: Folder to make; its parents are made too.
        images_per_site: Number of frontal images of each site, about a third as many patients;
            laterals come on top (about 17% at chexpert, 49% at mimic, none at nih).
        size: Pixels along an edge.
        seed: Another seed, other patients.
        sites: Which to write: "nih", "chexpert" or "mimic".
        rare_at_least: Share of a site's images that show even the rarest finding, 0 for the real
            shares. Default 10%, so that a test split of 400 images has about 40 of each.
        progress: Called with the number of images written so far and their total.

    Raises:
        PhantomError: `root` exists and holds something, or another argument is out of its range.
        InputError: There are too few images to give each split a patient.
    """
    root = Path(root)
    _check(root, images_per_site, sites, rare_at_least)
    root.parent.mkdir(parents=True, exist_ok=True)
    sources = {
        site: np.random.default_rng([seed, list(SITES).index(site)]).spawn(4) for site in sites
    }
    cohorts = {
        site: sample_cohort(site, images_per_site, source[0], rare_at_least)
        for site, source in sources.items()
    }
    total, done = sum(map(len, cohorts.values())), 0

    def report(written: int) -> None:
        nonlocal done
        done += written
        if progress is not None:
            progress(done, total)

    with atomic_path(root) as unfinished:
        for site, cohort in cohorts.items():
            _, pictures, doubts, numbers = sources[site]
            reports = read_reports(cohort, site, rare_at_least, doubts)
            folder = unfinished / site
            folder.mkdir(parents=True)
            if site == "nih":
                layout = write_nih(folder, cohort, size)
            elif site == "chexpert":
                layout = write_chexpert(folder, cohort, reports)
            else:
                layout = write_mimic(folder, cohort, reports, size, numbers)
            write_pictures(cohort, layout, site, size, pictures, report)
            _write_site(unfinished, site, cohort, layout, seed)


def _check(root: Path, images_per_site: int, sites: Sequence[str], rare_at_least: float) -> None:
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise PhantomError(
            f"the phantom needs a folder that is empty or does not exist; {root} holds something; "
            "remove it or name another folder."
        )
    if isinstance(sites, str) or not sites or len(set(sites)) < len(sites) or set(sites) - {*SITES}:
        raise PhantomError(f"sites need to be some of {', '.join(SITES)}, each once; got {sites}.")
    if images_per_site < 1:
        raise PhantomError(f"images_per_site needs a number from 1; got {images_per_site}.")
    if not 0 <= rare_at_least <= 0.5:
        raise PhantomError(
            f"rare_at_least needs a share from 0 (the real shares) to 0.5; got {rare_at_least}."
        )


def write_pictures(
    cohort: Cohort,
    layout: SiteLayout,
    site: str,
    size: int,
    rng: np.random.Generator,
    report: Callable[[int], None],
) -> None:
    """Draw and save every image of a site.

    Args:
        cohort: The images.
        layout: Where they are saved.
        site: Whose machines to imitate.
        size: Side of the images, pixels.
        rng: Source of randomness.
        report: Called with the number of images written since the last call.
    """
    images = cohort.images
    first_visits = images.drop_duplicates("person")
    patients = sample_anatomy(len(first_visits), rng)
    patients.female = first_visits["sex"] == "F"
    anatomy = vary_exposure_of(patients[images["person"].to_numpy()], rng)
    device, lateral = images["device"].to_numpy(), images["lateral"].to_numpy()
    files = [layout.images / name for name in layout.names]
    for folder in {file.parent for file in files}:
        folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(files), _CHUNK):
        rows = slice(start, start + _CHUNK)
        drawn = render(
            cohort.present[rows],
            site,
            rng,
            size,
            anatomy=anatomy[rows].view(np.recarray),
            devices=device[rows],
            lateral=lateral[rows],
            visibility=cohort.visibility[rows],
        )
        for file, picture in zip(files[rows], drawn, strict=True):
            # Each format takes its own option and ignores the other's.
            Image.fromarray(picture).save(file, quality=92, compress_level=1)
        report(len(drawn))


def _write_site(root: Path, site: str, cohort: Cohort, layout: SiteLayout, seed: int) -> None:
    """Write the truth, the split and the site file."""
    truth_csv, split_csv = root / "truth" / f"{site}.csv", root / "sites" / f"{site}_split.csv"
    findings = dict(zip(UNION_CLASSES, cohort.present.T, strict=True))
    write_csv(pd.DataFrame({"image": layout.names} | findings), truth_csv)
    split_csv.parent.mkdir(exist_ok=True)
    table = readers.read(layout.dataset, [layout.labels])
    table = table[table["view"].isin(FRONTAL)].reset_index(drop=True)  # what a site uses by default
    write_split(
        split_patients(table, seed=seed, draws=1),  # as what was published of it was made
        table,
        split_csv,
        scheme=f"70/10/20 {SCHEME}",
        seed=seed,
    )
    write_site_file(
        root / "sites" / f"{site}.yaml",
        dataset=layout.dataset,
        labels=layout.labels,
        images=layout.images,
        split=split_csv,
        classes=None if layout.classes is None else list(layout.classes),
        truth=truth_csv,
    )
