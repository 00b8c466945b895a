import re

import numpy as np
import pandas as pd
import pytest

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, UNION_CLASSES
from cxr_study.data.readers import cxr_lt, mimic
from cxr_study.phantom.patients.cohort import read_reports, sample_cohort
from cxr_study.phantom.writers.mimic_layout import NEVER_PRESENT, write_mimic

CHEXPERT, METADATA, SPLIT = (
    f"mimic-cxr-2.0.0-{name}.csv.gz" for name in ("chexpert", "metadata", "split")
)


@pytest.fixture(scope="module")
def cohort():
    return sample_cohort("mimic", 2000, np.random.default_rng(0))


@pytest.fixture(scope="module")
def reports(cohort):
    return read_reports(cohort, "mimic", 0.1, np.random.default_rng(1))


@pytest.fixture(scope="module")
def layout(tmp_path_factory, cohort, reports):
    folder = tmp_path_factory.mktemp("mimic")
    return write_mimic(folder, cohort, reports, 32, np.random.default_rng(2))


def cells(layout, name):
    return pd.read_csv(layout.images / name, dtype=str, keep_default_na=False)


def test_image_paths_are_grouped_by_patient_and_study(layout):
    path = r"files/p1\d/p(1\d{7})/s5\d{7}/[0-9a-f]{8}(-[0-9a-f]{8}){4}\.jpg"
    patients = [re.fullmatch(path, name)[1] for name in layout.names]
    assert all(
        f"/p{patient[:2]}/" in name for patient, name in zip(patients, layout.names, strict=True)
    )
    assert len(set(layout.names)) == len(layout.names)


def test_the_csv_files_have_the_official_columns(layout):
    assert ",".join(cells(layout, CHEXPERT).columns) == (
        "subject_id,study_id,Atelectasis,Cardiomegaly,Consolidation,Edema,"
        "Enlarged Cardiomediastinum,Fracture,Lung Lesion,Lung Opacity,No Finding,Pleural Effusion,"
        "Pleural Other,Pneumonia,Pneumothorax,Support Devices"
    )
    assert ",".join(cells(layout, METADATA).columns) == (
        "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns,"
        "StudyDate,StudyTime,ProcedureCodeSequence_CodeMeaning,ViewCodeSequence_CodeMeaning,"
        "PatientOrientationCodeSequence_CodeMeaning"
    )
    assert ",".join(cells(layout, SPLIT).columns) == "dicom_id,study_id,subject_id,split"


def test_some_views_are_blank_and_some_odd(layout, cohort):
    position = cells(layout, METADATA)["ViewPosition"]
    assert (position == "").mean() == pytest.approx(0.042, abs=0.015)
    assert {"AP", "PA", "LATERAL", "LL"} < set(position)
    assert {"AP AXIAL", "AP LLD", "PA LLD", "LPO", "RAO", "XTABLE LATERAL"} & set(position)
    lateral = position.isin(["LATERAL", "LL", "LPO", "RAO", "XTABLE LATERAL"])
    known = position != ""
    assert (lateral[known] == cohort.images["lateral"][known]).all()


def test_study_labels_are_read_back_and_one_study_has_none(layout, cohort, reports):
    table = mimic.read(layout.images / CHEXPERT, layout.images / METADATA)
    assert table["image"].tolist() == layout.names
    unlabelled = table["Edema"].isna()
    assert cohort.images["study"][unlabelled].nunique() == 1
    for name in CHEXPERT_CLASSES:
        np.testing.assert_array_equal(table[name][~unlabelled], reports[name][~unlabelled])
    assert (table.loc[~unlabelled, list(CHEXPERT_CLASSES)] == -1).any(axis=None)


def test_the_official_split_keeps_patients_together_and_has_all_three(layout):
    split = mimic.official_split(layout.images / SPLIT)
    counts = split["split"].value_counts()
    assert counts["train"] > 0.97 * len(split)
    assert {"validation", "test"} < set(counts.index)


def test_cxr_lt_labels_every_image_with_the_truth(layout, cohort):
    table = cxr_lt.read(layout.labels)
    assert layout.labels.relative_to(layout.images).as_posix() == "cxr-lt-2024/train_labeled.csv"
    assert table["image"].tolist() == layout.names
    np.testing.assert_array_equal(table[list(UNION_CLASSES)], cohort.present)
    columns = cells(layout, "cxr-lt-2024/train_labeled.csv")
    assert columns.shape == (len(cohort), 6 + 26)
    assert set(columns) >= {*UNION_CLASSES, *NEVER_PRESENT, "Normal", "fpath"}
    assert (columns[list(NEVER_PRESENT)] == "0").all(axis=None)
    normal = columns["Normal"] == "1"
    assert (normal == (cohort.present.sum(axis=1) == 0)).all()
    assert columns["study_id"].str.fullmatch(r"s5\d{7}").all()
    assert (columns["subject_id"] == table["patient"]).all()


def test_later_studies_have_later_dates(layout, cohort):
    metadata = cells(layout, METADATA)
    dates = metadata["StudyDate"].astype(int)
    later = (cohort.images["person"].diff() == 0) & (cohort.images["visit"].diff() == 1)
    assert (dates.diff()[later] > 0).all()
    assert (dates.diff()[cohort.images["study"].diff() == 0] == 0).all()
    assert pd.to_datetime(metadata["StudyDate"], format="%Y%m%d").notna().all()
