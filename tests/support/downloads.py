"""Official downloads of every data set, two or three images each, and the label tables they are."""

import csv
import io
from dataclasses import dataclass, field

import pandas as pd

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.data.readers import read

DESCRIPTORS = ["image", "patient", "view", "sex", "age"]
NAN = float("nan")


@dataclass
class Official:
    """An undamaged download.

    Attributes:
        files: The csv files, as text; the first holds the labels.
        rows: The label table that they are, written down by hand.
        free: Column -> fields of the label table that follow from it whatever its text is; none
            for a column that is not read. Any other column refuses garbage.
        blank: The same for a column in which a blank, too, has a meaning.
        lines: Lines of the labels per image.
    """

    dataset: str
    files: tuple[str, ...]
    rows: list[list]
    classes: tuple[str, ...]
    free: dict[str, set[str]]
    blank: dict[str, set[str]] = field(default_factory=dict)
    lines: int = 1

    @property
    def table(self):
        return pd.DataFrame(self.rows, columns=[*DESCRIPTORS, *self.classes])


PATIENTS = "CheXpert-v1.0-small/train/patient0000"
CHEXPERT = (
    "No Finding,Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,Lung Lesion,Edema,"
    "Consolidation,Pneumonia,Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,Fracture,"
    "Support Devices"
)
VINDR = (
    "Aortic enlargement,Atelectasis,Calcification,Cardiomegaly,Clavicle fracture,Consolidation,"
    "Edema,Emphysema,Enlarged PA,ILD,Infiltration,Lung Opacity,Lung cavity,Lung cyst,"
    "Mediastinal shift,Nodule/Mass,Pleural Effusion,Pleural Thickening,Pneumothorax,Fibrosis,"
    "Rib fracture,Other lesion,COPD,Lung tumor,Pneumonia,Tuberculosis,Other diseases"
)
VINDR_HEADER = (
    VINDR.replace("Effusion", "effusion")
    .replace("Thickening", "thickening")
    .replace("Fibrosis", "Pulmonary fibrosis")
)
ZEROS = "0," * 26


def unread(*columns):
    return {column: set() for column in columns}


def itself(*columns):
    return {column: {column} for column in columns}


def nih_row(image, patient, view, sex, age, *present):
    return [image, patient, view, sex, age, *(float(name in present) for name in NIH_CLASSES)]


def labels(**present):
    """Of the CheXpert classes in order, -2 by default; underscores stand for blanks."""
    return [present.get(name.replace(" ", "_"), -2) for name in CHEXPERT_CLASSES]


def clear(**present):
    """Labels that are absent by default, as where a row says No Finding; but for the devices."""
    absent = {name.replace(" ", "_"): 0 for name in CHEXPERT_CLASSES}
    return absent | {"Support_Devices": -2} | present


def chexpert_row(image, view, sex, age, **present):
    patient = f"patient0000{image[0]}"
    return [f"{PATIENTS}{image}.jpg", patient, view, sex, age, *labels(**present)]


def mimic_row(patient, image, view, **present):
    path = f"files/p10/p1{patient}/s{image}.jpg"
    return [path, f"1{patient}", view, "", NAN, *labels(**present)]


EDEMA = {"Edema": 1, "Consolidation": -1, "Pleural_Effusion": 0}
DEVICE = {"Pneumothorax": 0, "Support_Devices": 1}
FRACTURED = {"Cardiomegaly": -1, "Lung_Opacity": 1, "Fracture": 1}

OFFICIAL = {
    "nih": Official("nih", (
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,"
        "View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],\n"
        "00000001_000.png,Cardiomegaly|Effusion,0,1,058Y,M,PA,1,2,.1,.2,\n"
        "00000001_001.png,No Finding,1,1,59,M,AP,1,2,.1,.2,\n"
        "00000012_000.png,Hernia,0,12,414,F,PA,1,2,.1,.2,\n",
    ), [
        nih_row("00000001_000.png", "1", "PA", "M", 58, "Cardiomegaly", "Pleural Effusion"),
        nih_row("00000001_001.png", "1", "AP", "M", 59),
        nih_row("00000012_000.png", "12", "PA", "F", NAN, "Hernia"),
    ], NIH_CLASSES,
        {"Image Index": {"image"}, "View Position": {"view"}, "Patient Gender": {"sex"}}
        | unread("Follow-up #", "OriginalImage[Width", "Height]", "y]", "")
        | unread("OriginalImagePixelSpacing[x"),
        {"Patient Age": {"age"}},
    ),
    "chexpert": Official("chexpert", (
        f"Path,Sex,Age,Frontal/Lateral,AP/PA,{CHEXPERT},note\n"
        f"{PATIENTS}1/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,,,,,,,,,0.0,,,,1.0,\n"
        f"{PATIENTS}2/study2/view1_frontal.jpg,Male,87,Frontal,LL,,,-1.0,1.0,,,,,,,,,1.0,,\n"
        f"{PATIENTS}2/study2/view2_lateral.jpg,Male,87,Lateral,,,,-1.0,1.0,,,,,,,,,1.0,,\n",
    ), [
        chexpert_row("1/study1/view1_frontal", "AP", "F", 68, **clear(**DEVICE)),
        chexpert_row("2/study2/view1_frontal", "frontal", "M", 87, **FRACTURED),
        chexpert_row("2/study2/view2_lateral", "lateral", "M", 87, **FRACTURED),
    ], CHEXPERT_CLASSES,
        unread("note") | {"No Finding": set(CHEXPERT_CLASSES)},
        itself(*CHEXPERT_CLASSES) | {"Sex": {"sex"}, "Age": {"age"}, "AP/PA": {"view"}},
    ),
    "mimic": Official("mimic", (
        f"subject_id,study_id,{CHEXPERT},note\n"
        "10000032,50414267,1.0,,,,,,,,,,,,,,\n"
        "10000764,57375967,,,,,,1.0,-1.0,,,,0.0,,,,\n",
        "dicom_id,subject_id,study_id,ViewPosition,Rows\n"
        "02aa-1,10000032,50414267,PA,3056\n"
        "174b-2,10000764,57375967,LL,3056\n",
    ), [
        mimic_row("0000032", "50414267/02aa-1", "PA", **clear()),
        mimic_row("0000764", "57375967/174b-2", "lateral", **EDEMA),
    ], CHEXPERT_CLASSES,
        unread("Rows", "note")
        | {"dicom_id": {"image"}, "ViewPosition": {"view"}, "No Finding": set(CHEXPERT_CLASSES)},
        itself(*CHEXPERT_CLASSES),
    ),
    "cxr-lt": Official("cxr-lt", (
        "dicom_id,subject_id,study_id,ViewPosition,ViewCodeSequence_CodeMeaning,fpath,Bulla,"
        "Normal,Mass\n"
        "02aa,10000032,s50414267,AP,x,files/p10/p10000032/s50414267/02aa.jpg,0,0,1\n"
        "174b,10000764,s57375967,LL,x,files/p10/p10000764/s57375967/174b.jpg,1,0,0\n",
    ), [
        ["files/p10/p10000032/s50414267/02aa.jpg", "10000032", "AP", "", NAN, 0, 1],
        ["files/p10/p10000764/s57375967/174b.jpg", "10000764", "lateral", "", NAN, 1, 0],
    ], ("Bulla", "Mass"),
        unread("dicom_id", "study_id", "ViewCodeSequence_CodeMeaning", "Normal")
        | {"ViewPosition": {"view"}},
    ),
    "vindr": Official("vindr", (
        f"image_id,rad_id,{VINDR_HEADER},No finding\n"
        f"50ab,R1,1,{ZEROS}0\n50ab,R2,0,{ZEROS}1\n50ab,R3,1,{ZEROS}0\n"
        f"6ccd,R1,1,{ZEROS}0\n6ccd,R2,0,{ZEROS}1\n6ccd,R3,0,{ZEROS}0\n",
    ), [
        ["50ab", "50ab", "PA", "", NAN, 1, *[0] * 26],
        ["6ccd", "6ccd", "PA", "", NAN, 0, *[0] * 26],
    ], tuple(VINDR.split(",")),
        {"rad_id": {"no field, but read"}, **unread("No finding")},
        lines=3,
    ),
    "padchest": Official("padchest", (
        "n,ImageID,ImageDir,StudyDate_DICOM,PatientID,PatientBirth,PatientSex_DICOM,"
        "Projection,Labels,Report\n"
        "0,1_a.png,0,20140915,8398,1950.0,F,PA,\"['cardiomegaly', ' goiter']\",\n"
        "1,2_b.png,54,20110404,9001,1988,M,L,['normal'],\n"
        "2,3_c.png,1,20100101,9001,,O,COSTAL,\"['goiter', 'exclude', 'cardiomegaly']\",\n",
    ), [
        ["0/1_a.png", "8398", "PA", "F", 64, 1, 1],
        ["54/2_b.png", "9001", "lateral", "M", 23, 0, 0],
        ["1/3_c.png", "9001", "other", "", NAN, 1, 1],
    ], ("Cardiomegaly", "goiter"),
        unread("n", "Report")
        | {"ImageID": {"image"}, "PatientID": {"patient"}}
        | {"PatientSex_DICOM": {"sex"}, "Projection": {"view"}},
        {"StudyDate_DICOM": {"age"}, "PatientBirth": {"age"}, "Labels": {"Cardiomegaly", "goiter"}},
    ),
    "table": Official("table", (
        "image,patient,view,sex,age,pleural_effusion,My finding,No Finding\n"
        "p1/1.png,A 1,PA,F,63,1,,0\n"
        "p1/2.png,A 1,lateral,F,63,-1,0,0\n"
        "p2/1.png,B 2,AP,M,,0,1.0,0\n",
    ), [
        ["p1/1.png", "A 1", "PA", "F", 63, 1, -2],
        ["p1/2.png", "A 1", "lateral", "F", 63, -1, 0],
        ["p2/1.png", "B 2", "AP", "M", NAN, 0, 1],
    ], ("Pleural Effusion", "My finding"),
        itself("image", "patient", "age") | {"No Finding": {"Pleural Effusion", "My finding"}},
        itself("view", "sex", "My finding") | {"pleural_effusion": {"Pleural Effusion"}},
    ),
}  # fmt: skip


def cells_of(text):
    return list(csv.reader(io.StringIO(text)))


def rewritten(text, rows, header):
    """A csv with other rows, each the first one but for some cells, and perhaps other columns."""
    names, first, *_ = cells_of(text)
    out = io.StringIO()
    writer = csv.DictWriter(out, header or names, restval="", extrasaction="ignore")
    csv.writer(out).writerow(header or names)
    writer.writerows({**dict(zip(names, first, strict=True)), **row} for row in rows)
    return out.getvalue()


def read_rewritten(folder, reader, *rows, images=None, header=None):
    """Read a download whose labels have other rows, and whose metadata, if any, has other images.

    A row says what differs from the download's first; `header`: the labels' columns, if others.
    """
    dataset = reader.__name__.rpartition(".")[2].replace("_", "-")
    labels, *metadata = OFFICIAL[dataset].files
    paths = [folder / "labels.csv", folder / "metadata.csv"][: 1 + len(metadata)]
    paths[0].write_text(rewritten(labels, rows, header))
    for text in metadata:
        paths[1].write_text(text if images is None else rewritten(text, images, None))
    return read(dataset, paths[:1], *paths[1:])
