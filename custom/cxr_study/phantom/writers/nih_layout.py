"""The layout of NIH ChestX-ray14.

<folder>/Data_Entry_2017_v2020.csv      labels of the 14 NIH findings
<folder>/images/00000001_000.png
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES
from cxr_study.phantom.patients.cohort import Cohort
from cxr_study.phantom.writers.layout import Layout

_FIELD_MM = 360.0  # width of the detector, for the pixel spacing
_SPELLING = {"Pleural Effusion": "Effusion", "Pleural Thickening": "Pleural_Thickening"}
_HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)


def write_labels(folder: Path, cohort: Cohort, size: int) -> Layout:
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
    csv.write_text(f"{_HEADER}\n{rows}", encoding="utf-8")
    return Layout("nih", csv, folder / "images", names)
