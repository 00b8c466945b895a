"""The layout of MIMIC-CXR-JPG, and of CXR-LT 2024, which labels its images.

<folder>/files/p10/p10000032/s50414267/<dicom_id>.jpg
<folder>/mimic-cxr-2.0.0-chexpert.csv.gz   labels of studies: 1.0, 0.0, -1.0 or blank
<folder>/mimic-cxr-2.0.0-metadata.csv.gz   views of images; some are blank, some odd
<folder>/mimic-cxr-2.0.0-split.csv.gz      the official split, nearly all of it train
<folder>/cxr-lt-2024/train_labeled.csv     26 labels of images: 1 or 0
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.vocabulary import UNION_CLASSES
from cxr_study.phantom.patients.cohort import Cohort
from cxr_study.phantom.patients.real_statistics import WITHOUT_VIEW
from cxr_study.phantom.writers.layouts import Layout, cells, write_csv

NEVER_PRESENT = (
    "Calcification of the Aorta",
    "Pneumomediastinum",
    "Pneumoperitoneum",
    "Subcutaneous Emphysema",
    "Tortuous Aorta",
)
"""Labels of CXR-LT that the phantom never draws."""

_FRONTAL_CODES = ("AP AXIAL", "AP LLD", "PA LLD")
_LATERAL_CODES = ("LATERAL", "LL", "LPO", "RAO", "XTABLE LATERAL")
_LATERAL_SHARES = (0.69, 0.29, 0.005, 0.005, 0.01)
_ODD = 0.005  # share of the frontal images with another code than PA or AP
_MEANING = {"PA": "postero-anterior", "AP": "antero-posterior", "LATERAL": "lateral"}
_PATIENTS_OF = {"validate": 0.0076, "test": 0.0045}  # 500 and 293 of 65,379


def write_mimic(
    folder: Path,
    cohort: Cohort,
    reports: dict[str, np.ndarray],
    size: int,
    rng: np.random.Generator,
) -> Layout:
    """Write the label csv files.

    One study has no row in the csv of study labels, as a few of MIMIC's have not.

    Args:
        folder: The site's.
        cohort: Its images.
        reports: What `read_reports` returns.
        size: Pixels along an edge.
        rng: Source of numbers, codes and dates.

    Returns:
        Where everything is; CXR-LT's csv is the one to train from.
    """
    images = cohort.images
    study = images["study"].to_numpy()
    subjects = np.sort(rng.choice(10**7, images["person"].max() + 1, replace=False)) + 10**7
    studies = rng.choice(10**7, study[-1] + 1, replace=False) + 5 * 10**7
    position = _positions(images, rng)
    meaning = [_MEANING.get("LATERAL" if code == "LL" else code, "") for code in position]
    keys = pd.DataFrame(
        {
            "dicom_id": _dicom_ids(len(cohort), rng),
            "subject_id": subjects[images["person"]],
            "study_id": studies[study],
        }
    )
    metadata = keys.assign(
        PerformedProcedureStepDescription=np.where(
            images["view"].groupby(study).transform("first") == "AP",
            "CHEST (PORTABLE AP)",
            "CHEST (PA AND LAT)",
        ),
        ViewPosition=position,
        Rows=size,
        Columns=size,
        StudyDate=_dates(images, rng),
        StudyTime=10_000.0 * rng.integers(0, 24, study[-1] + 1)[study],
        ProcedureCodeSequence_CodeMeaning="CHEST",
        ViewCodeSequence_CodeMeaning=meaning,
        PatientOrientationCodeSequence_CodeMeaning="Erect",
    )
    write_csv(metadata, folder / "mimic-cxr-2.0.0-metadata.csv.gz")
    _write_study_labels(folder / "mimic-cxr-2.0.0-chexpert.csv.gz", keys, reports, rng)
    split = _official_split(images["person"].to_numpy(), rng)
    split_csv = folder / "mimic-cxr-2.0.0-split.csv.gz"
    write_csv(keys[["dicom_id", "study_id", "subject_id"]].assign(split=split), split_csv)

    names = [
        f"files/p{subject // 10**6}/p{subject}/s{number}/{dicom}.jpg"
        for dicom, subject, number in keys.itertuples(index=False)
    ]
    present = dict(zip(UNION_CLASSES, cohort.present.T, strict=True))
    present |= dict.fromkeys(NEVER_PRESENT, np.zeros(len(cohort), dtype=int))
    present["Normal"] = 1 - cohort.present.max(axis=1)
    columns = {
        "dicom_id": keys["dicom_id"],
        "subject_id": keys["subject_id"],
        "study_id": "s" + keys["study_id"].astype(str),
        "ViewPosition": position,
        "ViewCodeSequence_CodeMeaning": meaning,
        "fpath": names,
    }
    csv = folder / "cxr-lt-2024" / "train_labeled.csv"
    write_csv(pd.DataFrame(columns | {name: present[name] for name in sorted(present)}), csv)
    return Layout("cxr-lt", csv, folder, names, UNION_CLASSES)


def _write_study_labels(
    csv: Path, keys: pd.DataFrame, reports: dict[str, np.ndarray], rng: np.random.Generator
) -> None:
    labels = pd.DataFrame({name: cells(reports[name]) for name in sorted(reports)})
    studies = keys[["subject_id", "study_id"]].join(labels).drop_duplicates("study_id")
    write_csv(studies.drop(studies.index[rng.integers(len(studies))]), csv)


def _positions(images: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Cells of the column ViewPosition."""
    n = len(images)
    lateral = rng.choice(_LATERAL_CODES, n, p=_LATERAL_SHARES)
    frontal = np.where(rng.random(n) < _ODD, rng.choice(_FRONTAL_CODES, n), images["view"])
    position = np.where(images["lateral"], lateral, frontal)
    return np.where(rng.random(n) < WITHOUT_VIEW, "", position)


def _dicom_ids(n: int, rng: np.random.Generator) -> list[str]:
    """Five groups of eight hexadecimal digits each."""
    parts = rng.integers(2**32, size=(n, 5))
    return ["-".join(f"{part:08x}" for part in row) for row in parts.tolist()]


def _dates(images: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Shifted into the future, as MIMIC's are; later visits have later dates."""
    year = 2110 + rng.integers(80, size=images["person"].max() + 1)[images["person"]]
    day = 30 * images["visit"].to_numpy()
    return 10_000 * (year + day // 360) + 100 * (1 + day // 30 % 12) + 1


def _official_split(person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Split of each image; at least one patient validates and one tests."""
    people = person[-1] + 1
    order, split = rng.permutation(people), np.full(people, "train", dtype=object)
    start = 0
    for name, share in _PATIENTS_OF.items():
        end = start + max(1, round(share * people))
        split[order[start:end]] = name
        start = end
    return split[person]
