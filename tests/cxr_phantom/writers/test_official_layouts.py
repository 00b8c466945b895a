import re

import numpy as np
import pandas as pd
import pytest

from cxr_phantom.patients.cohort import read_reports, sample_cohort
from cxr_phantom.writers import official_layouts as layouts
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.readers import chexpert, cxr_lt, mimic, nih
from downloads import CHEXPERT


def cells_of(csv):
    return pd.read_csv(csv, dtype=str, keep_default_na=False)


def assert_described(table, cohort):
    about = ["view", "sex", "age"]
    assert (table[about] == cohort.images[about]).all(axis=None)


def test_nih_has_the_official_header_and_spellings_and_the_reader_gets_the_cohort_back(tmp_path):
    cohort = sample_cohort("nih", 200, np.random.default_rng(0))
    layout = layouts.write_nih(tmp_path, cohort, size=32)
    assert layout.labels.name == "Data_Entry_2017_v2020.csv"
    assert layout.labels.read_text().splitlines()[0] == (
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,"
        "View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
    )
    cells = pd.read_csv(layout.labels)
    assert cells.shape == (200, 11)
    assert cells["Image Index"][0] == "00000001_000.png"
    found = set("|".join(cells["Finding Labels"]).split("|"))
    assert {"Effusion", "Pleural_Thickening", "No Finding"} <= found
    assert not {"Pleural Effusion", "Pleural Thickening", "Support Devices"} & found
    table = nih.read(layout.labels)
    assert table["image"].tolist() == layout.names
    assert (table["patient"].astype(int) == cohort.images["person"] + 1).all()
    assert_described(table, cohort)
    present = cohort.present[:, [UNION_CLASSES.index(name) for name in NIH_CLASSES]]
    np.testing.assert_array_equal(table[list(NIH_CLASSES)], present)


def drawn(site, frontals):
    cohort = sample_cohort(site, frontals, np.random.default_rng(0))
    return cohort, read_reports(cohort, site, 0.1, np.random.default_rng(1))


def as_read(reports, name):
    """Labels of a class; where a report names no finding it says No Finding, and has no blanks."""
    findings = [other for other in CHEXPERT_CLASSES if other != "Support Devices"]
    clear = ~pd.DataFrame(reports)[findings].isin((1, -1)).any(axis=1)
    blank = (reports[name] == -2) & clear & (name in findings)
    return np.where(blank, 0, reports[name])


def test_chexpert_has_the_official_cells_and_paths_and_the_reader_gets_the_reports_back(tmp_path):
    cohort, reports = drawn("chexpert", 1000)
    layout = layouts.write_chexpert(tmp_path, cohort, reports)
    assert layout.labels.name == "train.csv"
    cells = cells_of(layout.labels)
    assert ",".join(cells.columns) == f"Path,Sex,Age,Frontal/Lateral,AP/PA,{CHEXPERT}"
    assert set(cells["Sex"]) == {"Female", "Male"}
    assert set(cells[list(CHEXPERT_CLASSES)].to_numpy().ravel()) == {"1.0", "0.0", "-1.0", ""}
    assert set(cells["No Finding"]) == {"1.0", ""}
    lateral = cells["Path"].str.endswith("_lateral.jpg")
    assert (lateral == cohort.images["lateral"]).all()
    assert ((cells["Frontal/Lateral"] == "Lateral") == lateral).all()
    assert (cells["AP/PA"][lateral] == "").all()
    assert set(cells["AP/PA"][~lateral]) == {"AP", "PA"}
    parts = pd.Series(layout.names).str.extract(
        r"CheXpert-v1.0-small/train/patient(\d{5})/study(\d+)/view(\d+)_(frontal|lateral).jpg"
    )
    assert parts.notna().all(axis=None)
    assert parts.iloc[0, :3].tolist() == ["00001", "1", "1"]
    assert {"2", "3"} <= set(parts[1])
    assert set(parts[parts[2] == "2"][3]) == {"frontal", "lateral"}
    table = chexpert.read(layout.labels)
    assert table["image"].tolist() == layout.names
    assert_described(table, cohort)
    for name in CHEXPERT_CLASSES:
        np.testing.assert_array_equal(table[name], as_read(reports, name))


MIMIC_COLUMNS = {
    "chexpert": ",".join(["subject_id", "study_id", *sorted(CHEXPERT.split(","))]),
    "metadata": "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,"
    "ViewPosition,Rows,Columns,StudyDate,StudyTime,ProcedureCodeSequence_CodeMeaning,"
    "ViewCodeSequence_CodeMeaning,PatientOrientationCodeSequence_CodeMeaning",
    "split": "dicom_id,study_id,subject_id,split",
}


def test_mimic_has_the_official_files_and_the_readers_get_reports_and_truth_back(tmp_path):
    cohort, reports = drawn("mimic", 2000)
    layout = layouts.write_mimic(tmp_path, cohort, reports, 32, np.random.default_rng(2))
    path = r"files/(p1\d)/p(1\d{7})/s5\d{7}/[0-9a-f]{8}(-[0-9a-f]{8}){4}\.jpg"
    parts = [re.fullmatch(path, name) for name in layout.names]
    assert all(part[1] == f"p{part[2][:2]}" for part in parts)
    assert len(set(layout.names)) == len(layout.names)
    file = {name: layout.images / f"mimic-cxr-2.0.0-{name}.csv.gz" for name in MIMIC_COLUMNS}
    assert {name: ",".join(cells_of(file[name]).columns) for name in file} == MIMIC_COLUMNS
    # Some views are blank and some odd, and later visits have later dates.
    metadata, images = cells_of(file["metadata"]), cohort.images
    position, dates = metadata["ViewPosition"], metadata["StudyDate"].astype(int)
    assert (position == "").mean() == pytest.approx(0.042, abs=0.015)
    assert {"AP", "PA", "LATERAL", "LL"} < set(position)
    assert {"AP AXIAL", "AP LLD", "PA LLD", "LPO", "RAO", "XTABLE LATERAL"} & set(position)
    lateral = position.isin(["LATERAL", "LL", "LPO", "RAO", "XTABLE LATERAL"])
    assert (lateral == images["lateral"])[position != ""].all()
    later = (images["person"].diff() == 0) & (images["visit"].diff() == 1)
    assert (dates.diff()[later] > 0).all()
    assert (dates.diff()[images["study"].diff() == 0] == 0).all()
    assert pd.to_datetime(metadata["StudyDate"], format="%Y%m%d").notna().all()
    # One examination has no labels.
    table = mimic.read(file["chexpert"], file["metadata"])
    assert table["image"].tolist() == layout.names
    unlabelled = table["Edema"].isna()
    assert images["study"][unlabelled].nunique() == 1
    for name in CHEXPERT_CLASSES:
        np.testing.assert_array_equal(table[name][~unlabelled], as_read(reports, name)[~unlabelled])
    assert (table.loc[~unlabelled, list(CHEXPERT_CLASSES)] == -1).any(axis=None)
    split = mimic.official_split(file["split"])["split"].value_counts(normalize=True)
    assert split["train"] > 0.97
    assert {"validation", "test"} < set(split.index)
    # CXR-LT labels every image with the truth.
    assert layout.labels == layout.images / "cxr-lt-2024/train_labeled.csv"
    table, cells = cxr_lt.read(layout.labels), cells_of(layout.labels)
    assert table["image"].tolist() == layout.names
    np.testing.assert_array_equal(table[list(UNION_CLASSES)], cohort.present)
    assert cells.shape == (len(cohort), 6 + 26)
    assert set(cells) >= {*UNION_CLASSES, *layouts.NEVER_PRESENT, "Normal", "fpath"}
    assert (cells[list(layouts.NEVER_PRESENT)] == "0").all(axis=None)
    assert ((cells["Normal"] == "1") == (cohort.present.sum(axis=1) == 0)).all()
    assert cells["study_id"].str.fullmatch(r"s5\d{7}").all()
    assert (cells["subject_id"] == table["patient"]).all()
