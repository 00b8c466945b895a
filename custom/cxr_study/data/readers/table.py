"""A hospital's own csv.

    image,patient,view,sex,age,Cardiomegaly,Pneumonia
    p1/1.png,17,PA,F,63,1,0
    p1/2.png,17,lateral,F,63,,-1

`image` (or `path`) and `patient` are needed; `view`, `sex` and `age` may be left out; every other
column is a class.
"""

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from cxr_study.common.spelling import key
from cxr_study.data.labels.csv_columns import TableError, read_columns, read_header
from cxr_study.data.labels.label_table import DESCRIPTORS, LOADED, VIEWS, assemble
from cxr_study.data.readers import cell_values

_IMAGE = ("image", "path")
_OPTIONAL: dict[str, Callable[[str], Any]] = {
    "view": cell_values.one_of(f"{', '.join(VIEWS[:-1])} or a blank", {v: v for v in VIEWS}),
    "sex": cell_values.one_of("F, M or a blank", {"F": "F", "M": "M", "": ""}),
    "age": cell_values.age,
}


def read(csv: Path) -> pd.DataFrame:
    """Read a hospital's own csv: one line per image, one column per class.

    `image` is the path below the images folder, with the slashes of any system; `view` is PA, AP,
    frontal, lateral, other or blank; `sex` F, M or blank; `age` years or blank; a label 1, 0, -1
    (uncertain) or blank (not mentioned, or nobody looked: the site file says which).

    Returns:
        The label table of the file's classes, in its order; "No Finding" is no class. Without a
        column `view` all images count as frontal.
    """
    header = read_header(csv)
    for name in header:
        if key(name) in LOADED:
            raise TableError(
                f"{csv}, line 1, column '{name}': no class can have this name; rename or remove it."
            )
    names = cell_values.class_columns(csv, header, (*_IMAGE, *DESCRIPTORS), "table")
    if not names:
        raise TableError(
            f"{csv}, line 1: needs a column for every class; has only {', '.join(header)}."
        )
    optional = [name for name in _OPTIONAL if name in header]
    columns = read_columns(csv, [_IMAGE, "patient", *optional, *names])
    columns.require_unique("image", _image)
    described: dict[str, Any] = {name: columns.decode(name, _OPTIONAL[name]) for name in optional}
    return assemble(
        {names[name]: columns.decode(name, cell_values.label) for name in names},
        image=columns.decode("image", _image),
        patient=columns.decode("patient", cell_values.filled),
        **{"view": "frontal"} | described,
    )


def _image(text: str) -> str:
    path = PurePosixPath(text.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", text):
        raise ValueError(f"needs the path of a file below the images folder; got '{text}'.")
    return str(path)
