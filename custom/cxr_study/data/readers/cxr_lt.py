"""CXR-LT 2023 and 2024: radiographs of MIMIC-CXR-JPG with 26 to 45 labels per image.

The files differ in their labels, their order and the name of the path column, so every column that
does not describe the image is a label. "No Finding", since 2024 "Normal", is left out.
"""

import re
from pathlib import Path

import pandas as pd

from cxr_study.data.labels.csv_columns import TableError, read_columns, read_header
from cxr_study.data.labels.label_table import assemble
from cxr_study.data.readers import cell_values, mimic

_PATH = ("path", "fpath")
_DESCRIPTORS = (
    *(*_PATH, "dicom_id", "subject_id", "study_id"),
    *("ViewPosition", "ViewCodeSequence_CodeMeaning", "split"),
)
_IMAGE = r"(?:.*/)?p[0-9]{2}/p([0-9]+)/s[0-9]+/([^/]+)\.\w+"


def read(csv: Path) -> pd.DataFrame:
    """Read a labelled csv of CXR-LT 2023 or 2024: classes in its order, sex and age unknown.

    `image` is the path, files/p10/p10000032/s50414267/<dicom_id>.jpg.
    """
    names = cell_values.class_columns(csv, read_header(csv), _DESCRIPTORS, "cxr-lt")
    if not names:
        raise TableError(
            f"{csv}, line 1: needs columns with labels; has only {', '.join(_DESCRIPTORS)}. Is "
            "this a challenge's list of images without labels?"
        )
    columns = read_columns(csv, [_PATH, "subject_id", "ViewPosition", *names])
    columns.require_unique("path", lambda path: _image(path)[2])
    got = columns.decode("subject_id", cell_values.number)
    patient = columns.decode("path", lambda path: _image(path)[1])
    message = "the path is of patient {}; got '{}'. Was a column sorted or moved by itself?"
    columns.refuse(got != patient, "subject_id", message, patient, got)
    return assemble(
        {names[name]: columns.decode(name, cell_values.certain_label) for name in names},
        image=columns.cells["path"].to_numpy(),
        patient=patient,
        view=columns.decode("ViewPosition", mimic.view),
    )


def _image(path: str) -> re.Match[str]:
    need = "a path that ends like p10/p10000032/s50414267/<dicom_id>.jpg"
    return cell_values.matching(_IMAGE, path, need)
