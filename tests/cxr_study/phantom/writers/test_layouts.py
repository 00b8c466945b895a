import numpy as np
import pandas as pd
import pytest

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.readers import chexpert, nih
from cxr_study.phantom.patients.cohort import read_reports, sample_cohort
from cxr_study.phantom.writers.layouts import write_chexpert, write_csv, write_nih


@pytest.fixture
def cohort():
    return sample_cohort("chexpert", 1000, np.random.default_rng(0))


@pytest.fixture
def reports(cohort):
    return read_reports(cohort, "chexpert", 0.1, np.random.default_rng(1))


@pytest.fixture
def layout(tmp_path, cohort, reports):
    return write_chexpert(tmp_path, cohort, reports)


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


def test_compressed_csv_is_the_same_bytes_every_time(tmp_path, monkeypatch):
    table = pd.DataFrame({"a": [1]})
    for folder, now in (("one", 1e9), ("two", 2e9)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        write_csv(table, tmp_path / folder / "a.csv.gz")
    one, two = ((tmp_path / folder / "a.csv.gz").read_bytes() for folder in ("one", "two"))
    assert one == two and one.startswith(b"\x1f\x8b")
    assert pd.read_csv(tmp_path / "one" / "a.csv.gz").equals(table)


@pytest.fixture
def nih_cohort():
    return sample_cohort("nih", 200, np.random.default_rng(0))


@pytest.fixture
def nih_layout(tmp_path, nih_cohort):
    return write_nih(tmp_path, nih_cohort, size=32)


def test_the_csv_of_nih_has_the_official_name_header_and_spellings(nih_layout):
    assert nih_layout.labels.name == "Data_Entry_2017_v2020.csv"
    assert nih_layout.labels.read_text().splitlines()[0] == (
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,"
        "View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
    )
    cells = pd.read_csv(nih_layout.labels)
    assert cells.shape == (200, 11)
    assert cells["Image Index"][0] == "00000001_000.png"
    found = set("|".join(cells["Finding Labels"]).split("|"))
    assert {"Effusion", "Pleural_Thickening", "No Finding"} <= found
    assert not {"Pleural Effusion", "Pleural Thickening", "Support Devices"} & found


def test_the_reader_of_nih_gets_the_cohort_back(nih_layout, nih_cohort):
    table = nih.read(nih_layout.labels)
    assert table["image"].tolist() == nih_layout.names
    assert (table["patient"].astype(int) == nih_cohort.images["person"] + 1).all()
    for column in ("view", "sex", "age"):
        assert (table[column] == nih_cohort.images[column]).all()
    present = nih_cohort.present[:, [UNION_CLASSES.index(name) for name in NIH_CLASSES]]
    np.testing.assert_array_equal(table[list(NIH_CLASSES)], present)
