"""CheXpert: train.csv, valid.csv, test.csv, and files of other labelers with the same columns.

Data set: Irvin et al., AAAI 2019, https://stanfordmlgroup.github.io/competitions/chexpert.
Columns are found by name, because their order differs (train_cheXbert.csv). "No Finding" is not a
class: the blanks of its rows become negative.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.labels.csv_columns import CsvColumns, open_csv, read_columns
from cxr_study.data.labels.label_table import assemble
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import cell_values
from cxr_study.data.readers.table_layout import NORMAL

_IMAGE = r"(?:.*/)?((patient[0-9]+)/study[0-9]+/view[0-9]+_(frontal|lateral)\.\w+)"
_DESCRIPTORS = ("Sex", "Age", "Frontal/Lateral", "AP/PA")
_FRONTAL = {"Frontal": "frontal", "Lateral": "lateral"}
_PROJECTION = {"AP": "AP", "PA": "PA", "LL": "", "RL": "", "": ""}  # 17 frontals have LL or RL
_SEX = {"Female": "F", "Male": "M", "Unknown": "", "": ""}


def read(csv: Path) -> pd.DataFrame:
    """Read `train.csv`, or a csv with its columns or, like the test set's, only path and labels.

    Returns:
        The label table as read, with the 13 classes. `image` is the cell of `Path`, `patient` the
        patient folder in it. The view of a frontal image is PA or AP if the file has it, else
        "frontal".

    Raises:
        InputError: See `cxr_study.data.readers`; or the labels are of studies, not of images.
    """
    file = open_csv(csv)
    header = file.header
    if "Path" not in header and "Study" in header:
        raise InputError(
            f"{csv}, line 1: needs a column 'Path'; has 'Study'. Labels of studies do not identify "
            "images; use the csv that has a line for every image."
        )
    described = any(name in header for name in _DESCRIPTORS)
    wanted = ["Path", *(_DESCRIPTORS if described else ()), *CHEXPERT_CLASSES]
    cell_values.refuse_unread_classes(csv, header, wanted, "chexpert")
    normal = [name for name in header if name == NORMAL]
    columns = read_columns(file, [*wanted, *normal])
    need = "a path that ends like patient00001/study1/view1_frontal.jpg"
    image, patient, side = columns.match("Path", _IMAGE, need)
    columns.require_unique("Path", image)
    table = assemble(
        columns.decode_all(dict.fromkeys((*CHEXPERT_CLASSES, *normal), cell_values.label)),
        image=columns["Path"].to_numpy(),
        patient=patient,
        **(_described(columns) if described else {"view": side}),
    )
    return cell_values.apply_no_finding(table)


def _described(columns: CsvColumns) -> dict[str, np.ndarray]:
    """View, sex and age of each image."""
    values = columns.decode_all(
        {
            "Frontal/Lateral": cell_values.choice_parser("Frontal or Lateral", _FRONTAL),
            "AP/PA": cell_values.choice_parser("AP, PA, LL, RL or a blank", _PROJECTION),
            "Sex": cell_values.choice_parser("Female, Male, Unknown or a blank", _SEX),
            "Age": cell_values.age,
        }
    )
    side, projection = values["Frontal/Lateral"], values["AP/PA"]
    view = np.where((side == "frontal") & (projection != ""), projection, side)
    return {"view": view, "sex": values["Sex"], "age": values["Age"]}
