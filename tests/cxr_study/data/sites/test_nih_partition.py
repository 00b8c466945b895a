from pathlib import Path

import pandas as pd
import pytest

from cxr_study.data.labels.class_sets import ClassSetError, published
from cxr_study.data.labels.vocabulary import NIH_CLASSES
from cxr_study.data.readers.official_files import DiscoveryError
from cxr_study.data.sites.partition import StudyError, write_nih_study
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file

MINI = Path(__file__).parents[4].parent / "shared/data/nih-mini"
HEADER = "Image Index,Finding Labels,Patient ID,Patient Age,Patient Gender,View Position,\n"


@pytest.fixture
def nih(tmp_path):
    """40 patients with two images each, the second without a file."""
    folder = tmp_path / "nih"
    (folder / "images_001/images").mkdir(parents=True)
    rows = []
    for patient in range(40):
        finding = "Mass|Edema" if patient % 2 else "No Finding"
        for follow_up in range(2):
            rows.append(f"{patient:08}_{follow_up:03}.png,{finding},{patient},50,F,PA,\n")
        (folder / f"images_001/images/{patient:08}_000.png").touch()
    (folder / "Data_Entry_2017.csv").write_text(HEADER + "".join(rows))
    return folder


def load(paths):
    sites = [read_site_file(path) for path in paths]
    return sites, [load_labels(site).table for site in sites]


def check_study(paths):
    sites, tables = load(paths)
    assert [path.name for path in paths] == ["nih-1.yaml", "nih-2.yaml"]
    assert tuple(site.classes for site in sites) == published(2)
    assert not set(tables[0]["patient"]) & set(tables[1]["patient"])
    for site, table in zip(sites, tables, strict=True):
        assert set(table["split"]) == {"train", "validation", "test"}
        truth = pd.read_csv(site.truth)
        assert list(truth) == ["image", *NIH_CLASSES]
        here = truth.set_index("image").loc[table["image"], list(site.classes)]
        assert (here.to_numpy() == table[list(site.classes)].to_numpy()).all()
    return tables


def test_patients_are_shared_out_and_rows_without_image_left_out(nih, tmp_path):
    tables = check_study(write_nih_study(nih, tmp_path / "out", seed=0))
    assert [table["patient"].nunique() for table in tables] == [20, 20]
    assert [table["Mass"].sum() for table in tables] == [10, 10]
    assert all(table["image"].str.endswith("_000.png").all() for table in tables)


def test_truth_holds_the_classes_the_site_does_not(nih, tmp_path):
    _, second = write_nih_study(nih, tmp_path / "out", seed=0)
    site = read_site_file(second)
    assert "Edema" not in site.classes
    truth = pd.read_csv(site.truth).set_index("image")
    assert truth.loc[load_labels(site).table["image"], "Edema"].sum() == 10


def test_the_seed_decides_the_cut(nih, tmp_path):
    cuts = [
        load(write_nih_study(nih, tmp_path / str(number), seed=seed))[1][0]["image"].tolist()
        for number, seed in enumerate([0, 0, 1])
    ]
    assert cuts[0] == cuts[1] != cuts[2]


def test_a_folder_without_the_csv_is_refused(tmp_path):
    with pytest.raises(DiscoveryError, match=r"needs Data_Entry_2017\*\.csv .* there is none"):
        write_nih_study(tmp_path, tmp_path / "out", seed=0)


def test_two_csv_files_are_refused(nih, tmp_path):
    (nih / "Data_Entry_2017_v2020.csv").touch()
    with pytest.raises(DiscoveryError, match=r"needs one .*2017\.csv, .*2017_v2020\.csv"):
        write_nih_study(nih, tmp_path / "out", seed=0)


def test_a_folder_without_the_images_is_refused(nih, tmp_path):
    (nih / "images_001").rename(tmp_path / "elsewhere")
    with pytest.raises(StudyError, match=r"none of the 80 images .* first 00000000_000\.png"):
        write_nih_study(nih, tmp_path / "out", seed=0)


def test_a_number_of_sites_without_published_classes_is_refused(nih, tmp_path):
    with pytest.raises(ClassSetError, match="needs 7; has 2, 3"):
        write_nih_study(nih, tmp_path / "out", seed=0, k=7)


@pytest.mark.data
@pytest.mark.skipif(not MINI.is_dir(), reason=f"no NIH images in {MINI}")
def test_the_real_images_make_two_sites(tmp_path):
    tables = check_study(write_nih_study(MINI, tmp_path, seed=0))
    assert [table["patient"].nunique() for table in tables] == [132, 132]
    assert sum(len(table) for table in tables) == 1000
