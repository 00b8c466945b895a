"""CheXpert: train.csv, valid.csv and the files of other labellers with the same columns.

The 14th observation, "No Finding", follows from the others and is dropped.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from cxr_study.csv_columns import CsvColumns, read_columns
from cxr_study.label_table import assemble
from cxr_study.vocabulary import CHEXPERT_CLASSES

_IMAGE = re.compile(r"(?:.*/)?(patient\d+)/study\d+/view\d+_(?:frontal|lateral)\.\w+")
_FRONTAL = {"Frontal": True, "Lateral": False}
_SEX = {"Female": "F", "Male": "M"}  # one official row says Unknown
_VIEW = {"AP": "AP", "PA": "PA"}  # a few official frontals say LL or RL
_LABEL = {
    "1": 1.0,
    "1.0": 1.0,
    "0": 0.0,
    "0.0": 0.0,
    "": 0.0,  # not mentioned
    "-1": 0.0,  # uncertain: U-Zeros
    "-1.0": 0.0,
}


def read(csv: Path) -> pd.DataFrame:
    """Read the frontal images of a CheXpert label csv.

    Uncertain (-1) and blank labels both count as negative: the U-Zeros policy of Irvin et al.
    (AAAI 2019), which Kulkarni et al. (ML4H 2024) follow.

    Args:
        csv: `train.csv` or another csv with its columns, in any order; also with `.gz`.

    Returns:
        The label table of the 13 classes, laterals left out, every label 0.0 or 1.0. `image` is
        the `Path` cell as it stands, so the images folder is the one that holds
        `CheXpert-v1.0-small`; `patient` is the patient folder in it.

    Raises:
        TableError: A column is missing, a path names no patient, an image stands twice, or a cell
            holds a value the format does not know; names file, line and column.
    """
    columns = read_columns(
        csv, ["Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *CHEXPERT_CLASSES]
    )
    frontal = columns.decode("Frontal/Lateral", _needs("Frontal or Lateral", _FRONTAL))
    if not frontal.any():
        raise columns.error(
            columns.cells.index[0], "Frontal/Lateral", "no row of the file says Frontal."
        )
    columns = CsvColumns(csv, columns.cells[frontal])
    columns.require_unique("Path")
    meaning = _needs("1, 0, -1 or a blank", _LABEL)
    descriptors = {
        "image": columns.cells["Path"].to_numpy(),
        "patient": columns.decode("Path", _patient),
        "view": columns.decode("AP/PA", lambda text: _VIEW.get(text, "")),
        "sex": columns.decode("Sex", lambda text: _SEX.get(text, "")),
        "age": columns.decode("Age", _age),
    }
    return assemble(descriptors, {name: columns.decode(name, meaning) for name in CHEXPERT_CLASSES})


def _needs(what: str, values: Mapping[str, float]) -> Callable[[str], float]:
    def meaning(text: str) -> float:
        if text not in values:
            raise ValueError(f"needs {what}; got '{text}'.")
        return values[text]

    return meaning


def _patient(path: str) -> str:
    image = _IMAGE.fullmatch(path)
    if image is None:
        raise ValueError(
            f"needs a path that ends like patient00001/study1/view1_frontal.jpg; got '{path}'."
        )
    return image[1]


def _age(text: str) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        raise ValueError(f"needs a number of years; got '{text}'.") from None
