import numpy as np
import pandas as pd
import pytest

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import chexpert
from cxr_study.phantom.patients.cohort import sample_cohort
from cxr_study.phantom.writers.chexpert_layout import write_labels
from cxr_study.phantom.writers.reports import read_reports


@pytest.fixture
def cohort():
    return sample_cohort("chexpert", 1000, np.random.default_rng(0))


@pytest.fixture
def reports(cohort):
    return read_reports(cohort, "chexpert", 0.1, np.random.default_rng(1))


@pytest.fixture
def layout(tmp_path, cohort, reports):
    return write_labels(tmp_path, cohort, reports)


def test_the_csv_has_the_official_name_header_and_cells(layout):
    assert layout.labels.name == "train.csv"
    cells = pd.read_csv(layout.labels, dtype=str, keep_default_na=False)
    assert ",".join(cells.columns) == (
        "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly,"
        "Lung Opacity,Lung Lesion,Edema,Consolidation,Pneumonia,Atelectasis,Pneumothorax,"
        "Pleural Effusion,Pleural Other,Fracture,Support Devices"
    )
    assert set(cells["Sex"]) == {"Female", "Male"}
    counts = {name: cells[name].value_counts() for name in CHEXPERT_CLASSES}
    assert set(cells[list(CHEXPERT_CLASSES)].to_numpy().ravel()) == {"1.0", "0.0", "-1.0", ""}
    assert set(cells["No Finding"]) == {"1.0", ""}
    for name in ("Pneumonia", "Consolidation"):
        assert counts[name]["-1.0"] > 1.3 * counts[name]["1.0"]


def test_laterals_are_named_and_described_as_such_and_have_no_projection(layout, cohort):
    cells = pd.read_csv(layout.labels, dtype=str, keep_default_na=False)
    lateral = cells["Path"].str.endswith("_lateral.jpg")
    assert lateral.mean() == pytest.approx(0.17 / 1.17, abs=0.03)
    assert (lateral == cohort.images["lateral"]).all()
    assert ((cells["Frontal/Lateral"] == "Lateral") == lateral).all()
    assert (cells["AP/PA"][lateral] == "").all()
    assert set(cells["AP/PA"][~lateral]) == {"AP", "PA"}


def test_views_are_numbered_within_the_study_and_studies_within_the_patient(layout):
    parts = pd.Series(layout.names).str.extract(
        r"CheXpert-v1.0-small/train/patient(\d{5})/study(\d+)/view(\d+)_(frontal|lateral).jpg"
    )
    assert parts.notna().all(axis=None)
    assert parts.iloc[0, :3].tolist() == ["00001", "1", "1"]
    assert {"2", "3"} <= set(parts[1])
    second = parts[parts[2] == "2"]
    assert {"frontal", "lateral"} == set(second[3])


def test_the_reader_gets_the_reports_back(layout, cohort, reports):
    table = chexpert.read(layout.labels)
    assert table["image"].tolist() == layout.names
    for column in ("view", "sex", "age"):
        assert (table[column] == cohort.images[column]).all()
    for name in CHEXPERT_CLASSES:
        np.testing.assert_array_equal(table[name], reports[name])
