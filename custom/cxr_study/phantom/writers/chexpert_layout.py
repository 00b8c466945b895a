"""The layout of CheXpert.

<folder>/train.csv                      labels of the 13 CheXpert findings: 1.0, 0.0, -1.0 or blank
<folder>/CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg, view2_lateral.jpg
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.label_table import BLANK
from cxr_study.phantom.patients.cohort import Cohort
from cxr_study.phantom.writers.layout import Layout, write_csv

_OBSERVATIONS = (
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


def write_labels(folder: Path, cohort: Cohort, reports: dict[str, np.ndarray]) -> Layout:
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
    columns |= {name: cells(reports[name]) for name in _OBSERVATIONS}
    csv = folder / "train.csv"
    write_csv(pd.DataFrame(columns), csv)
    return Layout("chexpert", csv, folder, names)


def cells(labels: np.ndarray) -> np.ndarray:
    """Write labels as CheXpert and MIMIC do: 1.0, 0.0, -1.0 or nothing."""
    return np.where(labels == BLANK, "", labels.astype(str))
