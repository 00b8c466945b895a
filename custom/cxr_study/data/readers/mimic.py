"""MIMIC-CXR-JPG: labels of examinations ("studies"), and the metadata with the images of each.

Patient and examination numbers are text. CXR-LT (see `cxr_lt`) labels the same patients.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.csv_columns import CsvColumns, read_columns, read_header
from cxr_study.data.labels.label_table import assemble
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import cell_values

_MANUAL = "Airspace Opacity"  # what the labels by hand, and only they, call Lung Opacity
_VIEWS = {"PA": "PA", "AP": "AP", "": ""} | dict.fromkeys(
    ("LATERAL", "LL", "RL", "XTABLE LATERAL"), "lateral"
)
_SPLITS = {"train": "train", "validate": "validation", "test": "test"}


def read(labels: Path, metadata: Path) -> pd.DataFrame:
    """Read labels of MIMIC-CXR-JPG and give every image those of its examination.

    Args:
        labels: `mimic-cxr-2.0.0-chexpert.csv`, or the same of negbio, or the test set labelled by
            hand, `mimic-cxr-2.1.0-test-set-labeled.csv`.
        metadata: `mimic-cxr-2.0.0-metadata.csv`.

    Returns:
        The label table of the 13 classes, one row for every image of the metadata; NaN without
        labels. Labels by hand give only the images of their 687 examinations. Sex and age are
        unknown.
    """
    images = read_columns(metadata, ["dicom_id", "subject_id", "study_id", "ViewPosition"])
    patient_of = _patients(images)
    by_hand = _MANUAL in read_header(labels)
    studies = _studies(labels, by_hand, patient_of)
    study = pd.Index(studies.cells["study_id"]).get_indexer(pd.Index(images.cells["study_id"]))
    table = assemble(
        {
            name: np.where(study < 0, np.nan, studies.decode(name, cell_values.label)[study])
            for name in CHEXPERT_CLASSES
        },
        image=_paths(images.cells),
        patient=images.cells["subject_id"].to_numpy(),
        view=images.decode("ViewPosition", view),
    )
    return table[study >= 0].reset_index(drop=True) if by_hand else table


def view(position: str) -> str:
    """View of a `ViewPosition`: decubitus, axial and oblique pictures are "other"."""
    return _VIEWS.get(position, "other")


def official_split(csv: Path) -> pd.DataFrame:
    """Read `mimic-cxr-2.0.0-split.csv` as columns `patient` and `split`, each patient once."""
    columns = read_columns(csv, ["subject_id", "split"])
    columns.decode("subject_id", cell_values.number)
    splits = columns.decode("split", cell_values.one_of("train, validate or test", _SPLITS))
    rows = pd.DataFrame({"patient": columns.cells["subject_id"].to_numpy(), "split": splits})
    patients = rows.drop_duplicates("patient", ignore_index=True)
    first = rows["patient"].map(patients.set_index("patient")["split"])
    message = "patient {} is in '{}' already; a patient is in one split. Is this the official file?"
    columns.refuse(
        first != rows["split"], "split", message, rows["patient"].to_numpy(), first.to_numpy()
    )
    return patients


def _patients(images: CsvColumns) -> pd.Series:
    """Study -> patient, of the metadata."""
    images.require_unique("dicom_id", _dicom)
    images.decode("subject_id", cell_values.number)
    images.decode("study_id", cell_values.number)
    patient_of = images.cells.drop_duplicates("study_id").set_index("study_id")["subject_id"]
    _require_patient(images, patient_of)
    return patient_of


def _studies(labels: Path, by_hand: bool, patient_of: pd.Series) -> CsvColumns:
    """The labels, of studies that the metadata has."""
    opacity = ("Lung Opacity", _MANUAL) if by_hand else "Lung Opacity"
    wanted = [opacity if name == "Lung Opacity" else name for name in CHEXPERT_CLASSES]
    studies = read_columns(labels, ["study_id", *([] if by_hand else ["subject_id"]), *wanted])
    studies.require_unique("study_id", cell_values.number)
    study = studies.cells["study_id"]
    message = (
        "study {} has no image in the metadata csv. Are the two files whole, and of one release?"
    )
    studies.refuse(~study.isin(patient_of.index), "study_id", message, study.to_numpy())
    if not by_hand:
        _require_patient(studies, patient_of)
    return studies


def _require_patient(columns: CsvColumns, patient_of: pd.Series) -> None:
    """Refuse an examination that is another patient's than `patient_of` says."""
    study, got = columns.cells["study_id"].to_numpy(), columns.cells["subject_id"].to_numpy()
    patient = columns.cells["study_id"].map(patient_of).to_numpy()
    message = (
        "study {} is of patient {}; got '{}'. A study is of one patient, in labels and metadata "
        "alike."
    )
    columns.refuse(got != patient, "subject_id", message, study, patient, got)


def _paths(images: pd.DataFrame) -> np.ndarray:
    patient, study = images["subject_id"], images["study_id"]
    folder = "files/p" + patient.str[:2] + "/p" + patient + "/s" + study + "/"
    return (folder + images["dicom_id"] + ".jpg").to_numpy()


def _dicom(text: str) -> str:
    return cell_values.matching("[^/]+", text, "the name of an image")[0]
