"""The full official table of NIH ChestX-ray14, split as the studies split it."""

from pathlib import Path

import pytest

from cxr_studies.partition.partition import split_sites
from cxr_study.data.labels.vocabulary import NIH_CLASSES
from cxr_study.data.readers import nih
from cxr_study.data.sites.patient_split import (
    SPLITS,
    apply_split,
    read_split,
    split_patients,
    write_split,
)

NIH = Path(__file__).parents[3].parent / "shared/data/nih-metadata"
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not NIH.is_dir(), reason=f"no NIH metadata in {NIH}"),
]


@pytest.fixture(scope="module")
def table():
    return nih.read(NIH / "Data_Entry_2017_v2020.csv.gz")


def splits_of(rows):
    """Number of images per split, after a look that no patient is in two."""
    assert (rows.groupby("patient")["split"].nunique() == 1).all()
    return rows["split"].value_counts().to_dict()


def loaded(assignment, table, csv, site="nih"):
    """What a site sees of an assignment that went through a split file."""
    write_split(assignment, table, csv, scheme="test", seed=0)
    return apply_split(read_split(csv), table, site)


def test_seventy_ten_twenty_is_by_patient_and_within_a_percent_by_image(table, tmp_path):
    rows = loaded(split_patients(table, seed=0), table, tmp_path / "s.csv")
    assert rows.groupby("split")["patient"].nunique().to_dict() == {
        "train": 21564, "validation": 3080, "test": 6161,
    }  # fmt: skip
    counts = splits_of(rows)
    assert sum(counts.values()) == 112_120
    for name, share in zip(SPLITS, (0.7, 0.1, 0.2), strict=True):
        assert counts[name] / 112_120 == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("k", [2, 10])
def test_k_sites_share_no_patient_and_are_alike(table, tmp_path, k):
    names = [f"site-{number}" for number in range(1, k + 1)]
    assignment = split_sites(table, names, seed=0)
    first = loaded(assignment, table, tmp_path / "s.csv", "site-1")
    rows = table.merge(assignment, on="patient", validate="many_to_one")
    assert first["image"].tolist() == rows.loc[rows["site"] == "site-1", "image"].tolist()
    assert sum(splits_of(rows).values()) == 112_120
    patients = rows.groupby("site")["patient"].nunique()
    assert patients.sum() == 30_805
    assert patients.max() - patients.min() <= 1
    positive = (rows[list(NIH_CLASSES)] == 1).any(axis=1).groupby([rows["site"], rows["patient"]])
    shares = positive.any().groupby("site").mean()
    assert shares.max() - shares.min() < 0.001
