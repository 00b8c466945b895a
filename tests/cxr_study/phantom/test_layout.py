import hashlib

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_study import readers
from cxr_study.phantom import PhantomError, write_phantom
from cxr_study.site_file import load_table, read_site_file
from cxr_study.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES

IMAGES = 120
CSV = {"nih": "nih/Data_Entry_2017_v2020.csv", "chexpert": "chexpert/train.csv"}
CLASSES = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES}
sites = pytest.mark.parametrize("site", CSV)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("phantom") / "data"
    write_phantom(root, images_per_site=IMAGES, size=32, seed=3)
    return root


def hashes(root):
    return {
        file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in root.rglob("*")
        if file.is_file()
    }


def truth_of(root, site):
    return pd.read_csv(root / "truth" / f"{site}.csv")


def test_same_seed_same_bytes_and_another_seed_other_bytes(root, tmp_path):
    write_phantom(tmp_path / "again", images_per_site=IMAGES, size=32, seed=3)
    write_phantom(tmp_path / "other", images_per_site=IMAGES, size=32, seed=4)
    assert hashes(tmp_path / "again") == hashes(root)
    assert hashes(tmp_path / "other")["truth/nih.csv"] != hashes(root)["truth/nih.csv"]


@sites
def test_site_file_leads_to_every_image_and_all_classes_of_the_dataset(root, site):
    site_file = read_site_file(root / "sites" / f"{site}.yaml")
    table = load_table(site_file)
    assert len(table) == IMAGES
    assert site_file.classes == CLASSES[site]
    for file in table["file"]:
        with Image.open(file) as picture:
            assert (picture.mode, picture.size) == ("L", (32, 32))


@sites
def test_descriptors_are_filled(root, site):
    table = readers.read(site, root / CSV[site])
    assert set(table["view"]) == {"PA", "AP"}
    assert set(table["sex"]) == {"F", "M"}
    assert table["age"].between(18, 94).all()


@sites
def test_no_patient_stands_in_two_splits_and_shares_are_70_10_20(root, site):
    table = load_table(read_site_file(root / "sites" / f"{site}.yaml"))
    assert (table.groupby("patient")["split"].nunique() == 1).all()
    shares = table.groupby("patient")["split"].first().value_counts(normalize=True)
    assert shares["train"] == pytest.approx(0.7, abs=0.03)
    assert shares["test"] == pytest.approx(0.2, abs=0.03)


@sites
def test_truth_agrees_with_the_labels_and_names_the_same_images(root, site):
    table, truth = readers.read(site, root / CSV[site]), truth_of(root, site)
    assert list(truth.columns) == ["image", *UNION_CLASSES]
    assert list(truth["image"]) == list(table["image"])
    names = list(CLASSES[site])
    np.testing.assert_array_equal(truth[names], table[names])


@sites
def test_foreign_findings_are_in_the_truth_and_not_in_the_labels(root, site):
    foreign = sorted(set(UNION_CLASSES) - set(CLASSES[site]))
    assert truth_of(root, site)[foreign].any().all()
    text = (root / CSV[site]).read_text()
    for name in foreign:
        assert name not in text


def test_foreign_findings_are_drawn(root):
    # A support device is the brightest thing in a lung field; NIH does not label it.
    truth = truth_of(root, "nih").set_index("image")["Support Devices"]
    brightest = {
        image: np.asarray(Image.open(root / "nih" / "images" / image))[6:-6, 4:-4].max()
        for image in truth.index
    }
    brightest = pd.Series(brightest, dtype=float)
    assert brightest[truth == 1].mean() > brightest[truth == 0].mean() + 5


@sites
def test_visits_of_a_patient_show_the_same_chest(root, site):
    table = load_table(read_site_file(root / "sites" / f"{site}.yaml"))
    nothing = ~truth_of(root, site)[list(UNION_CLASSES)].any(axis=1)
    table = table[nothing].reset_index()
    pictures = [np.asarray(Image.open(file), dtype=float).ravel() for file in table["file"]]
    alike = np.corrcoef(pictures)
    same = table["patient"].to_numpy()[:, None] == table["patient"].to_numpy()
    same_view = table["view"].to_numpy()[:, None] == table["view"].to_numpy()
    others = ~np.eye(len(table), dtype=bool) & same_view
    assert alike[same & others].mean() > alike[~same & others].mean() + 0.02


@sites
def test_women_are_drawn_with_breasts(root, site):
    table = load_table(read_site_file(root / "sites" / f"{site}.yaml"))
    lower_zones = np.s_[20:25, [6, 7, 8, 9, 22, 23, 24, 25]]
    brightness = [np.asarray(Image.open(file))[lower_zones].mean() for file in table["file"]]
    by_sex = pd.Series(brightness).groupby(table["sex"]).mean()
    assert by_sex["F"] > by_sex["M"] + 8


def test_nih_csv_has_the_official_header_and_spellings(root):
    lines = (root / CSV["nih"]).read_text().splitlines()
    assert lines[0] == (
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,"
        "View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
    )
    cells = pd.read_csv(root / CSV["nih"])
    assert cells.shape == (IMAGES, 11)
    assert cells["Image Index"][0] == "00000001_000.png"
    found = set("|".join(cells["Finding Labels"]).split("|"))
    assert {"Effusion", "Pleural_Thickening", "No Finding"} <= found
    assert "Pleural Effusion" not in found


def test_chexpert_csv_has_the_official_header_and_values(root):
    cells = pd.read_csv(root / CSV["chexpert"], dtype=str, keep_default_na=False)
    assert ",".join(cells.columns) == (
        "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly,"
        "Lung Opacity,Lung Lesion,Edema,Consolidation,Pneumonia,Atelectasis,Pneumothorax,"
        "Pleural Effusion,Pleural Other,Fracture,Support Devices"
    )
    path = "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg"
    assert cells["Path"][0] == path
    counts = pd.Series(cells[list(CHEXPERT_CLASSES)].to_numpy().ravel()).value_counts()
    assert set(counts.index) == {"1.0", "0.0", ""}
    assert counts[""] > 5 * counts["0.0"]


def test_chexpert_no_finding_allows_support_devices_alone(root):
    cells = pd.read_csv(root / CSV["chexpert"])
    disease = [name for name in CHEXPERT_CLASSES if name != "Support Devices"]
    nothing = ~(cells[disease] == 1).any(axis=1)
    assert ((cells["No Finding"] == 1) == nothing).all()


def test_progress_ends_at_the_total(tmp_path):
    calls = []
    write_phantom(
        tmp_path / "p", images_per_site=40, size=16, progress=lambda *call: calls.append(call)
    )
    assert calls[-1] == (80, 80)
    assert calls == sorted(calls)


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(PhantomError, match="holds something; remove it"):
        write_phantom(tmp_path, images_per_site=40, size=16)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_run_that_breaks_off_leaves_nothing_behind(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_phantom(tmp_path / "p", images_per_site=40, size=16, progress=stop)
    assert list(tmp_path.iterdir()) == []
