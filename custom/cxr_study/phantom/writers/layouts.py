"""The layouts of NIH ChestX-ray14 and CheXpert, and what the writers of all layouts share.

<nih>/Data_Entry_2017_v2020.csv         labels of the 14 NIH findings
<nih>/images/00000001_000.png

<chexpert>/train.csv                    labels of the 13 CheXpert findings: 1.0, 0.0, -1.0 or blank
<chexpert>/CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg, view2_lateral.jpg
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.label_table import BLANK
from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES
from cxr_study.phantom.patients.cohort import Cohort

_FIELD_MM = 360.0  # width of the detector, for the pixel spacing
_SPELLING = {"Pleural Effusion": "Effusion", "Pleural Thickening": "Pleural_Thickening"}
_NIH_HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)
_CHEXPERT_LABELS = (
    *("No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion"),
    *("Edema", "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion"),
    *("Pleural Other", "Fracture", "Support Devices"),
)


@dataclass(frozen=True)
class Layout:
    """Where a site's data lie, once its labels are written.

    Attributes:
        dataset: A key of `cxr_study.data.readers.DATASETS`.
        labels: The csv to train from.
        images: Folder that the images' names are relative to.
        names: Image of each row of the cohort, as the label table names it.
        classes: Classes to list in the site file; None for all of the data set's.
    """

    dataset: str
    labels: Path
    images: Path
    names: list[str]
    classes: tuple[str, ...] | None = None


def write_csv(table: pd.DataFrame, csv: Path) -> None:
    """Write a csv, compressed where its name ends with .gz; the same table gives the same bytes."""
    csv.parent.mkdir(parents=True, exist_ok=True)
    packing = {"method": "gzip", "mtime": 0} if csv.suffix == ".gz" else None
    table.to_csv(csv, index=False, lineterminator="\n", compression=packing)


def write_nih(folder: Path, cohort: Cohort, size: int) -> Layout:
    """Write the label csv.

    Args:
        folder: The site's.
        cohort: Its images.
        size: Pixels along an edge.

    Returns:
        Where everything is.
    """
    images = cohort.images
    names = [
        f"{person + 1:08d}_{visit:03d}.png"
        for person, visit in zip(images["person"], images["visit"], strict=True)
    ]
    spellings = np.array([_SPELLING.get(name, name) for name in NIH_CLASSES])
    present = cohort.present[:, [UNION_CLASSES.index(name) for name in NIH_CLASSES]] == 1
    spacing = round(_FIELD_MM / size, 3)
    columns = {
        "image": names,
        "findings": ["|".join(spellings[row]) or "No Finding" for row in present],
        "visit": images["visit"],
        "patient": images["person"] + 1,
        "age": images["age"],
        "sex": images["sex"],
        "view": images["view"],
        "width": size,
        "height": size,
        "spacing_x": spacing,
        "spacing_y": spacing,
    }
    # pandas would quote the commas that the official header has within its brackets.
    rows = pd.DataFrame(columns).to_csv(index=False, header=False, lineterminator="\n")
    csv = folder / "Data_Entry_2017_v2020.csv"
    csv.write_text(f"{_NIH_HEADER}\n{rows}", encoding="utf-8")
    return Layout("nih", csv, folder / "images", names)


def write_chexpert(folder: Path, cohort: Cohort, reports: dict[str, np.ndarray]) -> Layout:
    """Write the label csv.

    Args:
        folder: The site's.
        cohort: Its images.
        reports: What `read_reports` returns.

    Returns:
        Where everything is.
    """
    images = cohort.images
    side = np.where(images["lateral"], "lateral", "frontal")
    names = [
        f"CheXpert-v1.0-small/train/patient{person + 1:05d}/study{visit + 1}/"
        f"view{number + 1}_{kind}.jpg"
        for person, visit, number, kind in zip(
            images["person"], images["visit"], images["number"], side, strict=True
        )
    ]
    columns = {
        "Path": names,
        "Sex": np.where(images["sex"] == "F", "Female", "Male"),
        "Age": images["age"],
        "Frontal/Lateral": np.where(images["lateral"], "Lateral", "Frontal"),
        "AP/PA": np.where(images["lateral"], "", images["view"]),
    }
    columns |= {name: cells(reports[name]) for name in _CHEXPERT_LABELS}
    csv = folder / "train.csv"
    write_csv(pd.DataFrame(columns), csv)
    return Layout("chexpert", csv, folder, names)


def cells(labels: np.ndarray) -> np.ndarray:
    """Write labels as CheXpert and MIMIC do: 1.0, 0.0, -1.0 or nothing."""
    return np.where(labels == BLANK, "", labels.astype(str))
