"""CXR-LT 2023 and 2024: radiographs of MIMIC-CXR-JPG with 26 to 45 labels per image.

Data set: Holste et al., https://physionet.org/content/cxr-lt-iccv-workshop-cvamd. The files differ
in their labels, the order of columns and the name of the path column, so every column that does
not describe the image is a label. "No Finding", since 2024 "Normal", is left out.
"""

from pathlib import Path

import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.labels.csv_columns import open_csv, read_columns
from cxr_study.data.labels.label_table import assemble
from cxr_study.data.readers import cell_values, mimic

_PATH = ("path", "fpath")
_DESCRIPTORS = (
    *(*_PATH, "dicom_id", "subject_id", "study_id"),
    *("ViewPosition", "ViewCodeSequence_CodeMeaning", "split"),
)
_IMAGE = r"(?:.*/)?p[0-9]{2}/p([0-9]+)/s[0-9]+/([^/]+)\.\w+"


def read(csv: Path) -> pd.DataFrame:
    """Read a labelled csv of CXR-LT 2023 or 2024.

    Returns:
        The label table as read, with the classes in the order of the file; every label is positive
        or negative, sex and age are unknown. `image` is the path, such as
        files/p10/p10000032/s50414267/<dicom_id>.jpg.

    Raises:
        InputError: See `cxr_study.data.readers`; or a path and its patient number disagree.
    """
    file = open_csv(csv)
    names = cell_values.class_columns(csv, file.header, _DESCRIPTORS, "cxr-lt")
    if not names:
        raise InputError(
            f"{csv}, line 1: needs columns with labels; has only {', '.join(_DESCRIPTORS)}. Is "
            "this a challenge's list of images without labels?"
        )
    columns = read_columns(file, [_PATH, "subject_id", "ViewPosition", *names])
    need = "a path that ends like p10/p10000032/s50414267/<dicom_id>.jpg"
    patient, image = columns.match("path", _IMAGE, need)
    columns.require_unique("path", image)
    got = columns.decode("subject_id", cell_values.number)
    message = "the path is of patient {}; got '{}'. Was one column sorted or moved alone?"
    columns.refuse(got != patient, "subject_id", message, patient, got)
    labels = columns.decode_all(dict.fromkeys(names, cell_values.certain_label))
    return assemble(
        {names[name]: labels[name] for name in names},
        image=columns["path"].to_numpy(),
        patient=patient,
        view=columns.decode("ViewPosition", mimic.view),
    )
