"""PadChest: the csv of all images, whose column `Labels` has Python lists of findings.

Data set: Bustos et al., Medical Image Analysis 2020, https://bimcv.cipf.es/bimcv-projects/padchest.
A finding is matched by its whole name: "subcutaneous emphysema" is not "emphysema". Labels by
radiologists and by a network (`MethodLabel`) are treated alike.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.csv_columns import full_match, read_columns
from cxr_study.data.labels.label_table import NEGATIVE, POSITIVE, assemble
from cxr_study.data.labels.vocabulary import class_name
from cxr_study.data.readers import cell_values

_SILENT = {"", "unchanged", "exclude", "suboptimal study"}  # not about findings
_VIEWS = {"PA": "PA", "AP": "AP", "AP_horizontal": "AP", "L": "lateral", "": "", "UNK": ""}


def read(csv: Path) -> pd.DataFrame:
    """Read `PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv`.

    Returns:
        The label table as read, with a class (float32) for each finding that occurs, in
        alphabetical order: positive if the image's list has it, else negative. All labels are NaN
        if the list is missing or has only remarks (unchanged, exclude, suboptimal study). `normal`
        is not a class. `image` is ImageDir/ImageID. Age is the year of the study minus the year of
        birth.

    Raises:
        InputError: See `cxr_study.data.readers`.
    """
    names = ["ImageID", "ImageDir", "StudyDate_DICOM", "PatientID", "PatientBirth"]
    columns = read_columns(csv, [*names, "PatientSex_DICOM", "Projection", "Labels"])
    columns.decode("ImageID", cell_values.non_blank)
    columns.require_unique("ImageID")
    folder = pd.Series(columns.decode("ImageDir", cell_values.number), columns.cells.index)
    age = columns.decode("StudyDate_DICOM", _study_year) - columns.decode("PatientBirth", _year)
    lists = [found for found in set(columns.decode("Labels", _findings)) if found is not None]
    occurring = sorted(frozenset().union(*lists))
    labels = columns.decode("Labels", lambda text: _labels(_findings(text), occurring))
    return assemble(
        dict(zip(occurring, labels.T, strict=True)),
        image=(folder + "/" + columns["ImageID"]).to_numpy(),
        patient=columns.decode("PatientID", cell_values.non_blank),
        view=columns.decode("Projection", lambda text: _VIEWS.get(text, "other")),
        sex=columns.decode("PatientSex_DICOM", cell_values.sex),
        age=np.where((age >= 0) & (age <= cell_values.OLDEST), age, np.nan),
    )


def _findings(text: str) -> frozenset[str] | None:
    """Classes in a list; None if it has only remarks, or is missing."""
    found = cell_values.split_findings(text, cell_values.LIST)
    tokens = {finding.lower() for finding in found} - _SILENT
    if not tokens:
        return None
    return frozenset(class_name(token, "padchest") for token in tokens - {"normal"})


def _labels(found: frozenset[str] | None, names: list[str]) -> np.ndarray:
    """Label of each name, float32; see `_findings` for `found`."""
    if found is None:
        return np.full(len(names), np.nan, np.float32)
    return np.array([POSITIVE if name in found else NEGATIVE for name in names], np.float32)


def _year(text: str) -> float:
    return float(full_match(r"([12][0-9]{3}(\.0)?)?", text, "a year, e.g. 1950")[0] or "nan")


def _study_year(text: str) -> float:
    return float(full_match("([12][0-9]{7})?", text, "a date, e.g. 20140731")[0][:4] or "nan")
