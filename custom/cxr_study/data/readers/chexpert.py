"""CheXpert: train.csv, valid.csv, test.csv and the files of other labellers with these columns.

Columns are found by name, because their order differs (train_cheXbert.csv). "No Finding" follows
from the other observations and is left out.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.csv_columns import CsvColumns, TableError, read_columns, read_header
from cxr_study.data.labels.label_table import assemble
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import cell_values

_IMAGE = r"(?:.*/)?(patient[0-9]+)/study[0-9]+/view[0-9]+_(frontal|lateral)\.\w+"
_DESCRIPTORS = ("Sex", "Age", "Frontal/Lateral", "AP/PA")
_FRONTAL = {"Frontal": "frontal", "Lateral": "lateral"}
_PROJECTION = {"AP": "AP", "PA": "PA", "LL": "", "RL": "", "": ""}  # 17 frontals say LL or RL
_SEX = {"Female": "F", "Male": "M", "Unknown": "", "": ""}


def read(csv: Path) -> pd.DataFrame:
    """Read `train.csv` or a csv with its columns, or the test set's with `Path` and labels only.

    Returns:
        The label table of the 13 classes; `image` is the `Path` cell, `patient` the patient folder
        in it. A frontal's view is PA or AP where the file says so, else "frontal".
    """
    header = read_header(csv)
    if "Path" not in header and "Study" in header:
        raise TableError(
            f"{csv}, line 1: needs a column 'Path'; has 'Study'. Labels of studies do not say "
            "which images they are of; use the csv that has a line for every image."
        )
    described = any(name in header for name in _DESCRIPTORS)
    columns = read_columns(csv, ["Path", *(_DESCRIPTORS if described else ()), *CHEXPERT_CLASSES])
    columns.require_unique("Path", lambda path: "/".join(path.split("/")[-3:]))
    return assemble(
        {name: columns.decode(name, cell_values.label) for name in CHEXPERT_CLASSES},
        image=columns.cells["Path"].to_numpy(),
        patient=columns.decode("Path", lambda path: _image(path)[1]),
        **_described(columns)
        if described
        else {"view": columns.decode("Path", lambda path: _image(path)[2])},
    )


def _described(columns: CsvColumns) -> dict[str, np.ndarray]:
    side = columns.decode("Frontal/Lateral", cell_values.one_of("Frontal or Lateral", _FRONTAL))
    projection = columns.decode(
        "AP/PA", cell_values.one_of("AP, PA, LL, RL or a blank", _PROJECTION)
    )
    sex = cell_values.one_of("Female, Male, Unknown or a blank", _SEX)
    return {
        "view": np.where((side == "frontal") & (projection != ""), projection, side),
        "sex": columns.decode("Sex", sex),
        "age": columns.decode("Age", cell_values.age),
    }


def _image(path: str) -> re.Match[str]:
    need = "a path that ends like patient00001/study1/view1_frontal.jpg"
    return cell_values.matching(_IMAGE, path, need)
