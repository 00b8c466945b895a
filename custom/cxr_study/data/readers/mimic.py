"""MIMIC-CXR-JPG: labels of examinations ("studies"), and metadata with the images of each.

Data set: Johnson et al., arXiv:1901.07042, https://physionet.org/content/mimic-cxr-jpg. Patient and
study numbers are text. CXR-LT (see `cxr_lt`) has other labels of the same patients.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.csv_columns import (
    CsvColumns,
    CsvFile,
    full_match,
    open_csv,
    read_columns,
)
from cxr_study.data.labels.label_table import assemble
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import cell_values
from cxr_study.data.readers.table_layout import NORMAL

_MANUAL = "Airspace Opacity"  # name of Lung Opacity in the manual labels, and only there
_VIEWS = {"PA": "PA", "AP": "AP", "": ""} | dict.fromkeys(
    ("LATERAL", "LL", "RL", "XTABLE LATERAL"), "lateral"
)
_SPLITS = {"train": "train", "validate": "validation", "test": "test"}


def read(labels: Path, metadata: Path) -> pd.DataFrame:
    """Read the labels of MIMIC-CXR-JPG; each image gets those of its study.

    Args:
        labels: `mimic-cxr-2.0.0-chexpert.csv`, the same of NegBio, or the manually labelled test
            set, `mimic-cxr-2.1.0-test-set-labeled.csv`.
        metadata: `mimic-cxr-2.0.0-metadata.csv`.

    Returns:
        The label table as read, with the 13 classes and a row for each image of the metadata; its
        labels are NaN if its study has none. With manual labels, only the images of their 687
        studies. Sex and age are unknown.

    Raises:
        InputError: See `cxr_study.data.readers`; or the two files disagree about a study.
    """
    images = read_columns(metadata, ["dicom_id", "subject_id", "study_id", "ViewPosition"])
    patient_of = _patients(images)
    file = open_csv(labels)
    by_hand = _MANUAL in file.header
    studies = _studies(file, by_hand, patient_of)
    study = pd.Index(studies["study_id"]).get_indexer(pd.Index(images["study_id"]))
    names = [*CHEXPERT_CLASSES, *(name for name in studies.cells if name == NORMAL)]
    decoded = studies.decode_all(dict.fromkeys(names, cell_values.label))
    table = assemble(
        {name: np.where(study < 0, np.nan, decoded[name][study]) for name in names},
        image=_paths(images),
        patient=images["subject_id"].to_numpy(),
        view=images.decode("ViewPosition", view),
    )
    table = cell_values.apply_no_finding(table)
    return table[study >= 0].reset_index(drop=True) if by_hand else table


def view(position: str) -> str:
    """View, see `label_table.VIEWS`, of a `ViewPosition` of MIMIC or DICOM.

    Decubitus, axial and oblique images are "other".
    """
    return _VIEWS.get(position, "other")


def official_split(csv: Path) -> pd.DataFrame:
    """Read the official split, `mimic-cxr-2.0.0-split.csv`.

    Returns:
        A row per patient with the columns `patient` and `split` (train, validation or test).

    Raises:
        InputError: See `cxr_study.data.readers`; or a patient is in two splits.
    """
    columns = read_columns(csv, ["subject_id", "split"])
    columns.decode("subject_id", cell_values.number)
    splits = columns.decode("split", cell_values.choice_parser("train, validate or test", _SPLITS))
    rows = pd.DataFrame({"patient": columns["subject_id"].to_numpy(), "split": splits})
    patients: pd.DataFrame = rows.drop_duplicates("patient", ignore_index=True)
    first = rows["patient"].map(patients.set_index("patient")["split"])
    message = "patient {} is already in '{}'; a patient is in one split. Is this the official file?"
    columns.refuse(
        first != rows["split"], "split", message, rows["patient"].to_numpy(), first.to_numpy()
    )
    return patients


def _patients(images: CsvColumns) -> pd.Series:
    """Study -> patient, from the metadata."""
    images.decode_all(
        {"dicom_id": _dicom, "subject_id": cell_values.number, "study_id": cell_values.number}
    )
    images.require_unique("dicom_id")
    patient_of: pd.Series = pd.Series(images["subject_id"].to_numpy(), images["study_id"])
    patient_of = patient_of[~patient_of.index.duplicated()]
    _require_patient(images, patient_of)
    return patient_of


def _studies(labels: CsvFile, by_hand: bool, patient_of: pd.Series) -> CsvColumns:
    """The rows of the label csv; all their studies must be in the metadata."""
    opacity = ("Lung Opacity", _MANUAL) if by_hand else "Lung Opacity"
    classes = [opacity if name == "Lung Opacity" else name for name in CHEXPERT_CLASSES]
    classes += [name for name in labels.header if name == NORMAL]
    read = [*CHEXPERT_CLASSES, _MANUAL]
    cell_values.refuse_unread_classes(labels.path, labels.header, read, "mimic")
    studies = read_columns(labels, ["study_id", *([] if by_hand else ["subject_id"]), *classes])
    studies.decode("study_id", cell_values.number)
    studies.require_unique("study_id")
    study = studies["study_id"]
    message = (
        "study {} has no image in the metadata csv. Are both files complete, and of one release?"
    )
    studies.refuse(~study.isin(patient_of.index), "study_id", message, study.to_numpy())
    if not by_hand:
        _require_patient(studies, patient_of)
    return studies


def _require_patient(columns: CsvColumns, patient_of: pd.Series) -> None:
    """Refuse studies whose patient differs from `patient_of`."""
    study, got = columns["study_id"].to_numpy(), columns["subject_id"].to_numpy()
    patient = columns["study_id"].map(patient_of).to_numpy()
    message = (
        "study {} is of patient {}; got '{}'. A study is of one patient, in labels and metadata "
        "alike."
    )
    columns.refuse(got != patient, "subject_id", message, study, patient, got)


def _paths(images: CsvColumns) -> np.ndarray:
    """Path of each image below the folder of the download."""
    patient, study = images["subject_id"], images["study_id"]
    folder = "files/p" + patient.str[:2] + "/p" + patient + "/s" + study + "/"
    return (folder + images["dicom_id"] + ".jpg").to_numpy()


def _dicom(text: str) -> str:
    return full_match("[^/]+", text, "the name of an image")[0]
