"""The official layouts: NIH ChestX-ray14, CheXpert, MIMIC-CXR-JPG, and CXR-LT 2024 over its images.

<nih>/Data_Entry_2017_v2020.csv         labels of the 14 NIH findings
<nih>/images/00000001_000.png

<chexpert>/train.csv                    labels of the 13 CheXpert findings: 1.0, 0.0, -1.0 or blank
<chexpert>/CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg, view2_lateral.jpg

<mimic>/files/p10/p10000032/s50414267/<dicom_id>.jpg
<mimic>/mimic-cxr-2.0.0-chexpert.csv.gz   labels of examinations: 1.0, 0.0, -1.0 or blank
<mimic>/mimic-cxr-2.0.0-metadata.csv.gz   views of images; some are blank, some odd
<mimic>/mimic-cxr-2.0.0-split.csv.gz      the official split, nearly all of it train
<mimic>/cxr-lt-2024/train_labeled.csv     26 labels of images: 1 or 0
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_phantom.patients.cohort import WITHOUT_VIEW, Cohort
from cxr_study.data.labels.label_table import BLANK
from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES

_FIELD_MM = 360.0  # width of the detector, for the pixel spacing
_SPELLING = {"Pleural Effusion": "Effusion", "Pleural Thickening": "Pleural_Thickening"}
_CHEXPERT_LABELS = (
    *("No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion"),
    *("Edema", "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion"),
    *("Pleural Other", "Fracture", "Support Devices"),
)
NEVER_PRESENT = (
    *("Calcification of the Aorta", "Pneumomediastinum", "Pneumoperitoneum"),
    *("Subcutaneous Emphysema", "Tortuous Aorta"),
)
"""Labels of CXR-LT that the phantom never draws."""

_FRONTAL_CODES = ("AP AXIAL", "AP LLD", "PA LLD")
_LATERAL_CODES = ("LATERAL", "LL", "LPO", "RAO", "XTABLE LATERAL")
_LATERAL_SHARES = (0.69, 0.29, 0.005, 0.005, 0.01)
_ODD = 0.005  # share of the frontal images with another code than PA or AP
_MEANING = {"PA": "postero-anterior", "AP": "antero-posterior", "LATERAL": "lateral"}
_PATIENTS_OF = {"validate": 0.0076, "test": 0.0045}  # 500 and 293 of 65,379


@dataclass(frozen=True)
class SiteLayout:
    """Where a site's data are.

    Attributes:
        dataset: Key of `readers.DATASETS`.
        labels: The csv to train from.
        images: Folder that the images' names are relative to.
        names: Image of each row of the cohort, as the label table names it.
        classes: Classes to list in the site file; None for all of the data set's.
    """

    dataset: str
    labels: Path
    images: Path
    names: list[str]
    classes: tuple[str, ...] | None = None


def write_csv(table: pd.DataFrame, csv: Path) -> None:
    """Write a csv with reproducible bytes.

    Args:
        table: Written without its index.
        csv: File, compressed where its name ends with .gz; its folder is created.
    """
    csv.parent.mkdir(parents=True, exist_ok=True)
    packing = {"method": "gzip", "mtime": 0} if csv.suffix == ".gz" else None
    table.to_csv(csv, index=False, lineterminator="\n", compression=packing)


def write_nih(folder: Path, cohort: Cohort, size: int) -> SiteLayout:
    """Write NIH's label csv.

    Args:
        folder: Of the site.
        cohort: The images.
        size: Side of the images, pixels.
    """
    images = cohort.images
    names = [
        f"{person + 1:08d}_{visit:03d}.png"
        for person, visit in zip(images["person"], images["visit"], strict=True)
    ]
    spellings = np.array([_SPELLING.get(name, name) for name in NIH_CLASSES])
    present = cohort.present[:, [UNION_CLASSES.index(name) for name in NIH_CLASSES]] == 1
    spacing = round(_FIELD_MM / size, 3)
    columns = {
        "Image Index": names,
        "Finding Labels": ["|".join(spellings[row]) or "No Finding" for row in present],
        "Follow-up #": images["visit"],
        "Patient ID": images["person"] + 1,
        "Patient Age": images["age"],
        "Patient Gender": images["sex"],
        "View Position": images["view"],
        "OriginalImage[Width": size,  # the official header has commas within its brackets
        "Height]": size,
        "OriginalImagePixelSpacing[x": spacing,
        "y]": spacing,
    }
    csv = folder / "Data_Entry_2017_v2020.csv"
    write_csv(pd.DataFrame(columns), csv)
    return SiteLayout("nih", csv, folder / "images", names)


def write_chexpert(folder: Path, cohort: Cohort, reports: dict[str, np.ndarray]) -> SiteLayout:
    """Write CheXpert's label csv.

    Args:
        folder: Of the site.
        cohort: The images.
        reports: Labels of `read_reports`.
    """
    images = cohort.images
    side = np.where(images["lateral"], "lateral", "frontal")
    names = [
        f"CheXpert-v1.0-small/train/patient{person + 1:05d}/study{visit + 1}/"
        f"view{number + 1}_{kind}.jpg"
        for person, visit, number, kind in zip(
            images["person"], images["visit"], images["number"], side, strict=True
        )
    ]
    columns = {
        "Path": names,
        "Sex": np.where(images["sex"] == "F", "Female", "Male"),
        "Age": images["age"],
        "Frontal/Lateral": np.where(images["lateral"], "Lateral", "Frontal"),
        "AP/PA": np.where(images["lateral"], "", images["view"]),
    }
    columns |= {name: _cells(reports[name]) for name in _CHEXPERT_LABELS}
    csv = folder / "train.csv"
    write_csv(pd.DataFrame(columns), csv)
    return SiteLayout("chexpert", csv, folder, names)


def write_mimic(
    folder: Path,
    cohort: Cohort,
    reports: dict[str, np.ndarray],
    size: int,
    rng: np.random.Generator,
) -> SiteLayout:
    """Write the csv files of MIMIC-CXR-JPG and of CXR-LT; the latter is the one to train from.

    One examination has no labels in MIMIC's csv, as a few of the real ones.

    Args:
        folder: Of the site.
        cohort: The images.
        reports: Labels of `read_reports`.
        size: Side of the images, pixels.
        rng: Source of numbers, dates, views and the official split.
    """
    images = cohort.images
    study = images["study"].to_numpy()
    subjects = np.sort(rng.choice(10**7, images["person"].max() + 1, replace=False)) + 10**7
    studies = rng.choice(10**7, study[-1] + 1, replace=False) + 5 * 10**7
    position = _positions(images, rng)
    meaning = [_MEANING.get("LATERAL" if code == "LL" else code, "") for code in position]
    parts = rng.integers(2**32, size=(len(cohort), 5))
    keys = pd.DataFrame(
        {
            "dicom_id": ["-".join(f"{part:08x}" for part in row) for row in parts.tolist()],
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
    labels = pd.DataFrame({name: _cells(reports[name]) for name in sorted(reports)})
    labelled = keys[["subject_id", "study_id"]].join(labels).drop_duplicates("study_id")
    labelled = labelled.drop(labelled.index[rng.integers(len(labelled))])
    write_csv(labelled, folder / "mimic-cxr-2.0.0-chexpert.csv.gz")
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
    return SiteLayout("cxr-lt", csv, folder, names, UNION_CLASSES)


def _positions(images: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Cells of the column ViewPosition."""
    n = len(images)
    lateral = rng.choice(_LATERAL_CODES, n, p=_LATERAL_SHARES)
    frontal = np.where(rng.random(n) < _ODD, rng.choice(_FRONTAL_CODES, n), images["view"])
    position = np.where(images["lateral"], lateral, frontal)
    return np.where(rng.random(n) < WITHOUT_VIEW, "", position)


def _dates(images: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """In the future, as MIMIC's are; later visits have later dates."""
    year = 2110 + rng.integers(80, size=images["person"].max() + 1)[images["person"]]
    day = 30 * images["visit"].to_numpy()
    return 10_000 * (year + day // 360) + 100 * (1 + day // 30 % 12) + 1


def _official_split(person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """MIMIC's official split of each image; at least one patient validates and one tests."""
    people = person[-1] + 1
    order, split = rng.permutation(people), np.full(people, "train", dtype=object)
    start = 0
    for name, share in _PATIENTS_OF.items():
        end = start + max(1, round(share * people))
        split[order[start:end]] = name
        start = end
    return split[person]


def _cells(labels: np.ndarray) -> np.ndarray:
    """Labels as CheXpert and MIMIC write them: 1.0, 0.0, -1.0 or nothing."""
    return np.where(labels == BLANK, "", labels.astype(str))
