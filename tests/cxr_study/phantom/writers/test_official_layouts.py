import re

import numpy as np
import pandas as pd
import pytest

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.readers import chexpert, cxr_lt, mimic, nih
from cxr_study.phantom.patients.cohort import read_reports, sample_cohort
from cxr_study.phantom.writers.official_layouts import (
    NEVER_PRESENT,
    write_chexpert,
    write_csv,
    write_mimic,
    write_nih,
)


def cells_of(csv):
    return pd.read_csv(csv, dtype=str, keep_default_na=False)


def test_compressed_csv_is_the_same_bytes_every_time(tmp_path, monkeypatch):
    table = pd.DataFrame({"a": [1]})
    for folder, now in (("one", 1e9), ("two", 2e9)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        write_csv(table, tmp_path / folder / "a.csv.gz")
    one, two = ((tmp_path / folder / "a.csv.gz").read_bytes() for folder in ("one", "two"))
    assert one == two and one.startswith(b"\x1f\x8b")
    assert pd.read_csv(tmp_path / "one" / "a.csv.gz").equals(table)


def test_nih_has_the_official_header_and_spellings_and_the_reader_gets_the_cohort_back(tmp_path):
    cohort = sample_cohort("nih", 200, np.random.default_rng(0))
    layout = write_nih(tmp_path, cohort, size=32)
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
    for column in ("view", "sex", "age"):
        assert (table[column] == cohort.images[column]).all()
    present = cohort.present[:, [UNION_CLASSES.index(name) for name in NIH_CLASSES]]
    np.testing.assert_array_equal(table[list(NIH_CLASSES)], present)


def written(site, frontals, write):
    """Cohort, reports and layout of a site."""
    cohort = sample_cohort(site, frontals, np.random.default_rng(0))
    reports = read_reports(cohort, site, 0.1, np.random.default_rng(1))
    return cohort, reports, write(cohort, reports)


@pytest.fixture(scope="module")
def of_chexpert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chexpert")
    return written("chexpert", 1000, lambda *drawn: write_chexpert(folder, *drawn))


@pytest.fixture(scope="module")
def of_mimic(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("mimic"), np.random.default_rng(2)
    return written("mimic", 2000, lambda *drawn: write_mimic(folder, *drawn, 32, rng))


class TestChexpert:
    def test_the_csv_has_the_official_name_header_and_cells(self, of_chexpert):
        cohort, _, layout = of_chexpert
        assert layout.labels.name == "train.csv"
        cells = cells_of(layout.labels)
        assert ",".join(cells.columns) == (
            "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly,"
            "Lung Opacity,Lung Lesion,Edema,Consolidation,Pneumonia,Atelectasis,Pneumothorax,"
            "Pleural Effusion,Pleural Other,Fracture,Support Devices"
        )
        assert set(cells["Sex"]) == {"Female", "Male"}
        assert set(cells[list(CHEXPERT_CLASSES)].to_numpy().ravel()) == {"1.0", "0.0", "-1.0", ""}
        assert set(cells["No Finding"]) == {"1.0", ""}
        for name in ("Pneumonia", "Consolidation"):
            assert (cells[name] == "-1.0").sum() > 1.3 * (cells[name] == "1.0").sum()
        lateral = cells["Path"].str.endswith("_lateral.jpg")
        assert lateral.mean() == pytest.approx(0.17 / 1.17, abs=0.03)
        assert (lateral == cohort.images["lateral"]).all()
        assert ((cells["Frontal/Lateral"] == "Lateral") == lateral).all()
        assert (cells["AP/PA"][lateral] == "").all()
        assert set(cells["AP/PA"][~lateral]) == {"AP", "PA"}

    def test_paths_number_views_and_the_reader_gets_the_reports_back(self, of_chexpert):
        cohort, reports, layout = of_chexpert
        parts = pd.Series(layout.names).str.extract(
            r"CheXpert-v1.0-small/train/patient(\d{5})/study(\d+)/view(\d+)_(frontal|lateral).jpg"
        )
        assert parts.notna().all(axis=None)
        assert parts.iloc[0, :3].tolist() == ["00001", "1", "1"]
        assert {"2", "3"} <= set(parts[1])
        assert set(parts[parts[2] == "2"][3]) == {"frontal", "lateral"}
        table = chexpert.read(layout.labels)
        assert table["image"].tolist() == layout.names
        for column in ("view", "sex", "age"):
            assert (table[column] == cohort.images[column]).all()
        for name in CHEXPERT_CLASSES:
            np.testing.assert_array_equal(table[name], reports[name])


class TestMimic:
    CHEXPERT, METADATA, SPLIT = (
        f"mimic-cxr-2.0.0-{name}.csv.gz" for name in ("chexpert", "metadata", "split")
    )

    def test_paths_and_columns_are_official(self, of_mimic):
        _, _, layout = of_mimic
        path = r"files/(p1\d)/p(1\d{7})/s5\d{7}/[0-9a-f]{8}(-[0-9a-f]{8}){4}\.jpg"
        parts = [re.fullmatch(path, name) for name in layout.names]
        assert all(part[1] == f"p{part[2][:2]}" for part in parts)
        assert len(set(layout.names)) == len(layout.names)
        columns = {
            self.CHEXPERT: "subject_id,study_id,Atelectasis,Cardiomegaly,Consolidation,Edema,"
            "Enlarged Cardiomediastinum,Fracture,Lung Lesion,Lung Opacity,No Finding,"
            "Pleural Effusion,Pleural Other,Pneumonia,Pneumothorax,Support Devices",
            self.METADATA: "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,"
            "ViewPosition,Rows,Columns,StudyDate,StudyTime,ProcedureCodeSequence_CodeMeaning,"
            "ViewCodeSequence_CodeMeaning,PatientOrientationCodeSequence_CodeMeaning",
            self.SPLIT: "dicom_id,study_id,subject_id,split",
        }
        for name, header in columns.items():
            assert ",".join(cells_of(layout.images / name).columns) == header

    def test_some_views_are_blank_and_some_odd_and_later_visits_have_later_dates(self, of_mimic):
        cohort, _, layout = of_mimic
        metadata, images = cells_of(layout.images / self.METADATA), cohort.images
        position = metadata["ViewPosition"]
        assert (position == "").mean() == pytest.approx(0.042, abs=0.015)
        assert {"AP", "PA", "LATERAL", "LL"} < set(position)
        assert {"AP AXIAL", "AP LLD", "PA LLD", "LPO", "RAO", "XTABLE LATERAL"} & set(position)
        lateral = position.isin(["LATERAL", "LL", "LPO", "RAO", "XTABLE LATERAL"])
        known = position != ""
        assert (lateral[known] == images["lateral"][known]).all()
        dates = metadata["StudyDate"].astype(int)
        later = (images["person"].diff() == 0) & (images["visit"].diff() == 1)
        assert (dates.diff()[later] > 0).all()
        assert (dates.diff()[images["study"].diff() == 0] == 0).all()
        assert pd.to_datetime(metadata["StudyDate"], format="%Y%m%d").notna().all()

    def test_labels_are_read_back_and_one_examination_has_none(self, of_mimic):
        cohort, reports, layout = of_mimic
        table = mimic.read(layout.images / self.CHEXPERT, layout.images / self.METADATA)
        assert table["image"].tolist() == layout.names
        unlabelled = table["Edema"].isna()
        assert cohort.images["study"][unlabelled].nunique() == 1
        for name in CHEXPERT_CLASSES:
            np.testing.assert_array_equal(table[name][~unlabelled], reports[name][~unlabelled])
        assert (table.loc[~unlabelled, list(CHEXPERT_CLASSES)] == -1).any(axis=None)

    def test_the_official_split_keeps_patients_together_and_has_all_three(self, of_mimic):
        _, _, layout = of_mimic
        split = mimic.official_split(layout.images / self.SPLIT)
        counts = split["split"].value_counts()
        assert counts["train"] > 0.97 * len(split)
        assert {"validation", "test"} < set(counts.index)

    def test_cxr_lt_labels_every_image_with_the_truth(self, of_mimic):
        cohort, _, layout = of_mimic
        table = cxr_lt.read(layout.labels)
        assert layout.labels == layout.images / "cxr-lt-2024/train_labeled.csv"
        assert table["image"].tolist() == layout.names
        np.testing.assert_array_equal(table[list(UNION_CLASSES)], cohort.present)
        columns = cells_of(layout.labels)
        assert columns.shape == (len(cohort), 6 + 26)
        assert set(columns) >= {*UNION_CLASSES, *NEVER_PRESENT, "Normal", "fpath"}
        assert (columns[list(NEVER_PRESENT)] == "0").all(axis=None)
        assert ((columns["Normal"] == "1") == (cohort.present.sum(axis=1) == 0)).all()
        assert columns["study_id"].str.fullmatch(r"s5\d{7}").all()
        assert (columns["subject_id"] == table["patient"]).all()
