"""VinDr-CXR of PhysioNet: image_labels_train.csv and image_labels_test.csv.

Data set: Nguyen et al., Scientific Data 2022, https://physionet.org/content/vindr-cxr. Three
radiologists read each training image, with a line each; the label is their majority. The test set
has one line per image, the consensus of five. There are no patient numbers, so each image counts
as a patient. "No finding" is left out.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.labels.csv_columns import CsvColumns, open_csv, read_columns
from cxr_study.data.labels.label_table import NEGATIVE, POSITIVE, assemble
from cxr_study.data.labels.vocabulary import VINDR_NAMES, class_name
from cxr_study.data.readers import cell_values

_READERS = 3  # of a training image


def read(csv: Path) -> pd.DataFrame:
    """Read the image labels of VinDr-CXR.

    Returns:
        The label table as read, with 27 classes and a row per image in the order of the file; every
        label is positive or negative. `image` and `patient` are the image's id; all views are PA.

    Raises:
        InputError: See `cxr_study.data.readers`; or a training image does not have three readers.
    """
    file = open_csv(csv)
    header = file.header
    if "class_name" in header:
        raise InputError(
            f"{csv}, line 1: needs a column for every finding; has 'class_name'. These are the "
            "boxes of Kaggle's competition; use PhysioNet's image_labels_train.csv."
        )
    votes = "rad_id" in header
    wanted = [(name, "Other disease") if name == "Other diseases" else name for name in VINDR_NAMES]
    cell_values.refuse_unread_classes(csv, header, VINDR_NAMES, "vindr")
    columns = read_columns(file, ["image_id", *(["rad_id"] if votes else []), *wanted])
    columns.decode("image_id", cell_values.non_blank)
    decoded = columns.decode_all(dict.fromkeys(VINDR_NAMES, cell_values.certain_label))
    labels = np.stack([decoded[name] for name in VINDR_NAMES], axis=1)
    images = columns["image_id"].to_numpy()
    if votes:
        images, labels = _majority(columns, labels)
    else:
        columns.require_unique("image_id")
    names = [class_name(name, "vindr") for name in VINDR_NAMES]
    return assemble(
        dict(zip(names, labels.T, strict=True)), image=images, patient=images, view="PA"
    )


def _majority(columns: CsvColumns, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Id of each image, and the majority of its readers' labels, float (images, classes)."""
    columns.decode("rad_id", cell_values.non_blank)
    names = columns["image_id"].to_numpy()
    readers = columns["rad_id"].to_numpy()
    message = "'{}' has read image '{}' in an earlier line, too; remove one of them."
    again = pd.DataFrame({"image": names, "reader": readers}).duplicated()
    columns.refuse(again, "rad_id", message, readers, names)
    image, images = pd.factorize(names)
    number = np.bincount(image)[image]
    message = "image '{}' has {} readers; a training image has three. Is the file cut off?"
    columns.refuse(number != _READERS, "image_id", message, names, number)
    positive = np.stack([np.bincount(image, weights=column) for column in labels.T], axis=1)
    return images, np.where(positive * 2 > _READERS, POSITIVE, NEGATIVE)
