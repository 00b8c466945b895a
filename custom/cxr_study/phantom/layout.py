"""Write the phantom to disk in the official layouts of NIH ChestX-ray14 and CheXpert.

    <root>/nih/Data_Entry_2017_v2020.csv        labels of the 14 NIH findings
    <root>/nih/images/00000001_000.png
    <root>/chexpert/train.csv                   labels of the 13 CheXpert findings
    <root>/chexpert/CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg
    <root>/truth/<site>.csv                     labels of all 20 findings, for evaluation only
    <root>/sites/<site>.yaml, <site>_split.csv  what a site needs to train

All pictures are frontal, and no CheXpert label is uncertain: negatives are blank, a few are 0.0.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from cxr_study import readers
from cxr_study.phantom.acquisition import SITES
from cxr_study.phantom.anatomy import sample_anatomy, vary_exposure_of
from cxr_study.phantom.cohort import sample_cohort
from cxr_study.phantom.rendering import render
from cxr_study.site_file import write_site_file
from cxr_study.split import split_patients, write_split
from cxr_study.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES

_CHUNK = 256  # images drawn before they are written
_MENTIONED = 0.1  # share of CheXpert's negatives that the report states: 0.0 and not blank
_FIELD_MM = 360.0  # width of the detector, for NIH's pixel spacing
_NIH_SPELLING = {"Pleural Effusion": "Effusion", "Pleural Thickening": "Pleural_Thickening"}
_NIH_HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)
_CHEXPERT_OBSERVATIONS = (
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
)


class PhantomError(ValueError):
    """The phantom cannot be written as asked."""


def write_phantom(
    root: Path,
    *,
    images_per_site: int = 2000,
    size: int = 64,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write pictures, labels, truth, splits and site files of both sites.

    The folder appears complete or not at all. The same arguments and library versions give the same
    bytes.

    Args:
        root: Folder to make; its parents are made too.
        images_per_site: Number of images of each site, about a third as many patients.
        size: Pixels along an edge.
        seed: Another seed, other patients.
        progress: Called with the number of images written so far and their total.

    Raises:
        PhantomError: `root` exists and holds something.
        SplitError: There are too few images to give each split a patient.
    """
    root = Path(root)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise PhantomError(
            f"the phantom needs a folder that is empty or does not exist; {root} holds something; "
            "remove it or name another folder."
        )
    root.parent.mkdir(parents=True, exist_ok=True)
    done = 0

    def report(written: int) -> None:
        nonlocal done
        done += written
        if progress is not None:
            progress(done, len(SITES) * images_per_site)

    with tempfile.TemporaryDirectory(dir=root.parent, prefix=f".{root.name}-") as scratch:
        unfinished = Path(scratch) / root.name
        for site in SITES:
            _write_site(unfinished, site, images_per_site, size, seed, report)
        unfinished.replace(root)


def _write_site(
    root: Path, site: str, images: int, size: int, seed: int, report: Callable[[int], None]
) -> None:
    """Write everything of one site below `root`."""
    people, pictures, mentions = np.random.default_rng([seed, list(SITES).index(site)]).spawn(3)
    cohort = sample_cohort(site, images, people)
    for folder in (root / site, root / "truth", root / "sites"):
        folder.mkdir(parents=True, exist_ok=True)
    if site == "nih":
        labels_csv, folder = root / "nih" / "Data_Entry_2017_v2020.csv", root / "nih" / "images"
        names = _nih_names(cohort)
        _write_nih_labels(labels_csv, cohort, names, size)
    else:
        labels_csv, folder = root / "chexpert" / "train.csv", root / "chexpert"
        names = _chexpert_names(cohort)
        _write_chexpert_labels(labels_csv, cohort, names, mentions)
    _write_pictures(cohort, [folder / name for name in names], site, size, pictures, report)

    truth_csv, split_csv = root / "truth" / f"{site}.csv", root / "sites" / f"{site}_split.csv"
    truth = pd.DataFrame({"image": names} | {name: cohort[name] for name in UNION_CLASSES})
    _write_csv(truth, truth_csv)
    write_split(split_patients(readers.read(site, labels_csv), seed=seed), split_csv)
    write_site_file(
        root / "sites" / f"{site}.yaml",
        dataset=site,
        labels=labels_csv,
        images=folder,
        split=split_csv,
        truth=truth_csv,
    )


def _write_pictures(
    cohort: pd.DataFrame,
    files: list[Path],
    site: str,
    size: int,
    rng: np.random.Generator,
    report: Callable[[int], None],
) -> None:
    """Draw and save every image of a site."""
    first_visits = cohort.drop_duplicates("person")
    patients = sample_anatomy(len(first_visits), rng)
    patients = replace(patients, female=(first_visits["sex"] == "F").to_numpy(float))
    anatomy = vary_exposure_of(patients.take(cohort["person"].to_numpy()), rng)
    labels, views = cohort[list(UNION_CLASSES)].to_numpy(), cohort["view"].to_numpy(str)
    for folder in {file.parent for file in files}:
        folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(files), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(files)))
        drawn = render(labels[rows], site, rng, size, anatomy=anatomy.take(rows), views=views[rows])
        for row, picture in zip(rows, drawn, strict=True):
            # Each format takes its own option and ignores the other's.
            Image.fromarray(picture).save(files[row], quality=92, compress_level=1)
        report(len(rows))


def _nih_names(cohort: pd.DataFrame) -> list[str]:
    return [
        f"{person + 1:08d}_{visit:03d}.png"
        for person, visit in zip(cohort["person"], cohort["visit"], strict=True)
    ]


def _chexpert_names(cohort: pd.DataFrame) -> list[str]:
    return [
        f"CheXpert-v1.0-small/train/patient{person + 1:05d}/study{visit + 1}/view1_frontal.jpg"
        for person, visit in zip(cohort["person"], cohort["visit"], strict=True)
    ]


def _write_nih_labels(csv: Path, cohort: pd.DataFrame, names: list[str], size: int) -> None:
    spellings = np.array([_NIH_SPELLING.get(name, name) for name in NIH_CLASSES])
    present = cohort[list(NIH_CLASSES)].to_numpy(bool)
    spacing = round(_FIELD_MM / size, 3)
    columns = {
        "image": names,
        "findings": ["|".join(spellings[row]) or "No Finding" for row in present],
        "visit": cohort["visit"],
        "patient": cohort["person"] + 1,
        "age": cohort["age"],
        "sex": cohort["sex"],
        "view": cohort["view"],
        "width": size,
        "height": size,
        "spacing_x": spacing,
        "spacing_y": spacing,
    }
    # pandas would quote the commas that the official header has within its brackets.
    rows = pd.DataFrame(columns).to_csv(index=False, header=False, lineterminator="\n")
    csv.write_text(f"{_NIH_HEADER}\n{rows}", encoding="utf-8")


def _write_chexpert_labels(
    csv: Path, cohort: pd.DataFrame, names: list[str], rng: np.random.Generator
) -> None:
    present = cohort[list(CHEXPERT_CLASSES)].to_numpy(bool)
    mentioned = rng.random(present.shape) < _MENTIONED
    cells = np.where(present, "1.0", np.where(mentioned, "0.0", ""))
    disease = cohort[[name for name in CHEXPERT_CLASSES if name != "Support Devices"]].any(axis=1)
    observations = dict(zip(CHEXPERT_CLASSES, cells.T, strict=True))
    observations["No Finding"] = np.where(disease, "", "1.0")
    columns = {
        "Path": names,
        "Sex": np.where(cohort["sex"] == "F", "Female", "Male"),
        "Age": cohort["age"],
        "Frontal/Lateral": "Frontal",
        "AP/PA": cohort["view"],
    }
    columns |= {name: observations[name] for name in _CHEXPERT_OBSERVATIONS}
    _write_csv(pd.DataFrame(columns), csv)


def _write_csv(table: pd.DataFrame, csv: Path) -> None:
    table.to_csv(csv, index=False, lineterminator="\n")
