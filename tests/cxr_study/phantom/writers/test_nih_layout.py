import numpy as np
import pandas as pd
import pytest

from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES
from cxr_study.data.readers import nih
from cxr_study.phantom.patients.cohort import sample_cohort
from cxr_study.phantom.writers.nih_layout import write_labels


@pytest.fixture
def cohort():
    return sample_cohort("nih", 200, np.random.default_rng(0))


@pytest.fixture
def layout(tmp_path, cohort):
    return write_labels(tmp_path, cohort, size=32)


def test_the_csv_has_the_official_name_header_and_spellings(layout):
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


def test_the_reader_gets_the_cohort_back(layout, cohort):
    table = nih.read(layout.labels)
    assert table["image"].tolist() == layout.names
    assert (table["patient"].astype(int) == cohort.images["person"] + 1).all()
    for column in ("view", "sex", "age"):
        assert (table[column] == cohort.images[column]).all()
    present = cohort.present[:, [UNION_CLASSES.index(name) for name in NIH_CLASSES]]
    np.testing.assert_array_equal(table[list(NIH_CLASSES)], present)
