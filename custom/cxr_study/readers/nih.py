"""NIH ChestX-ray14: Data_Entry_2017.csv and Data_Entry_2017_v2020.csv.

Columns are found by name, because the two generations differ: the older ends every line with a
comma and some copies of it say `Patient Sex`; in both, the commas within the brackets of
`OriginalImage[Width,Height]` make more columns than there seem to be.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.csv_columns import read_columns
from cxr_study.label_table import assemble
from cxr_study.vocabulary import NIH_CLASSES, VocabularyError, canonical, nearest

_OLDEST = 120.0
_UNITS_PER_YEAR = {"": 1.0, "Y": 1.0, "M": 12.0, "W": 52.0, "D": 365.0}


def read(csv: Path) -> pd.DataFrame:
    """Read the NIH label csv of either generation.

    Args:
        csv: `Data_Entry_2017*.csv`, or the same with `.gz`.

    Returns:
        The label table of all 14 classes, every label 0.0 or 1.0 ("No Finding" is 0.0 throughout).
        An age may carry a unit (058Y, 011M); one above 120 years is taken as unknown.

    Raises:
        TableError: A column is missing, a finding is none of the 14, an image stands twice, an
            image or patient is blank, or an age is not a number; names file, line and column.
    """
    columns = read_columns(
        csv,
        [
            "Image Index",
            "Finding Labels",
            "Patient ID",
            "Patient Age",
            ("Patient Gender", "Patient Sex"),
            "View Position",
        ],
    )
    columns.require_unique("Image Index")
    labels = columns.decode("Finding Labels", _labels)
    descriptors = {
        "image": columns.decode("Image Index", _filled),
        "patient": columns.decode("Patient ID", _filled),
        "view": columns.decode("View Position", _among("PA", "AP")),
        "sex": columns.decode("Patient Gender", _among("F", "M")),
        "age": columns.decode("Patient Age", _age),
    }
    return assemble(descriptors, dict(zip(NIH_CLASSES, labels.T, strict=True)))


def _labels(text: str) -> tuple[float, ...]:
    findings = [finding.strip() for finding in text.split("|")]
    if findings == ["No Finding"]:
        return (0.0,) * len(NIH_CLASSES)
    present = {_class(finding) for finding in findings}
    return tuple(float(name in present) for name in NIH_CLASSES)


def _class(finding: str) -> str:
    try:
        name = canonical(finding)
    except VocabularyError:
        name = finding
    if name not in NIH_CLASSES:
        raise ValueError(
            f"'{finding}' is not an NIH finding; {nearest(finding, NIH_CLASSES)}. Findings are "
            "separated by '|'; an image without any says 'No Finding' alone."
        )
    return name


def _filled(text: str) -> str:
    if not text:
        raise ValueError("the cell is blank; every row needs a value here.")
    return text


def _among(*known: str) -> Callable[[str], str]:
    return lambda text: text if text in known else ""


def _age(text: str) -> float:
    if not text:
        return np.nan
    number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([YMWD]?)", text)
    if number is None:
        raise ValueError(f"'{text}' is not an age; needs a number of years, e.g. 58 or 058Y.")
    years = float(number[1]) / _UNITS_PER_YEAR[number[2]]
    return years if years <= _OLDEST else np.nan
