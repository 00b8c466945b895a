import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_phantom.drawing.rendering import SITES
from cxr_phantom.patients.cohort import sample_cohort
from cxr_phantom.writers.official_layouts import SiteLayout
from cxr_phantom.writers.write_phantom import PhantomError, write_phantom, write_pictures
from cxr_study.data import readers
from cxr_study.data.labels.label_table import FRONTAL
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import apply_split, read_split

IMAGES, SEED = 120, 3
OPTIONS = {"images_per_site": IMAGES, "size": 32, "seed": SEED, "sites": tuple(SITES)}
LABELLED = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES, "mimic": UNION_CLASSES}
sites = pytest.mark.parametrize("site", SITES)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("phantom") / "data"
    write_phantom(root, **OPTIONS)
    return root


def hashes(root):
    return {
        file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in root.rglob("*")
        if file.is_file()
    }


def read(root, site):
    """Site file, label table and truth of a site."""
    file = read_site_file(root / "sites" / f"{site}.yaml")
    truth = pd.read_csv(root / "truth" / f"{site}.csv")
    return file, readers.read(file.dataset, file.labels), truth


def pictures(file, images):
    shown = [np.asarray(Image.open(file.images / image)) for image in images]
    return np.array(shown, dtype=float)


def test_the_same_arguments_make_the_same_bytes_whatever_the_other_sites(root, tmp_path):
    write_phantom(tmp_path / "again", **OPTIONS)
    write_phantom(tmp_path / "other", **OPTIONS | {"seed": 4})
    write_phantom(tmp_path / "one", **OPTIONS | {"sites": ["mimic"]})
    folders = (root, *(tmp_path / name for name in ("again", "other", "one")))
    first, again, other, one = map(hashes, folders)
    assert again == first
    assert other["truth/nih.csv"] != first["truth/nih.csv"]
    assert one == {path: first[path] for path in first if "mimic" in path.split("_")[0]}
    # Patients follow from seed and site alone: they are the same in another version.
    patients, *_ = np.random.default_rng([SEED, 0]).spawn(5)
    truth = read(root, "nih")[2][list(UNION_CLASSES)]
    np.testing.assert_array_equal(truth, sample_cohort("nih", IMAGES, patients, 0.1).present)


def test_findings_show_as_plainly_as_the_cohort_says(tmp_path):
    cohort, calls = sample_cohort("chexpert", 300, np.random.default_rng(0)), []

    def drawn(name, **changes):
        files = [f"{name}{row}.png" for row in range(len(cohort))]
        layout = SiteLayout("chexpert", tmp_path / "train.csv", tmp_path, files)
        rng = np.random.default_rng(1)
        write_pictures(replace(cohort, **changes), layout, "chexpert", 32, rng, calls.append)
        return pictures(layout, files)

    healthy = drawn("healthy", present=0 * cohort.present)
    assert calls == [256, len(cohort) - 256]  # reported piece by piece
    faint, plain = (drawn(v, visibility=0 * cohort.visibility + v) for v in (0, 1))
    assert np.abs(plain - healthy).mean() > 1.3 * np.abs(faint - healthy).mean() > 0


def test_progress_ends_at_the_total_with_laterals_and_real_shares_are_rare(tmp_path):
    calls, root = [], tmp_path / "p"
    options = {"images_per_site": 400, "size": 8, "rare_at_least": 0}
    write_phantom(root, **options, progress=lambda *call: calls.append(call))
    truths = [read(root, site)[2] for site in ("nih", "chexpert")]
    total = sum(map(len, truths))
    assert total > 800 and not (root / "mimic").exists()
    assert calls[-1] == (total, total)
    assert calls == sorted(calls)
    assert truths[0]["Hernia"].mean() < 0.02


@pytest.mark.parametrize(("argument", "message"), [
    ({"sites": ["nih", "vindr"]}, r"some of nih, chexpert, mimic.*got \['nih', 'vindr'\]"),
    ({"sites": ["nih", "nih"]}, "each once"), ({"sites": "nih"}, "each once; got nih"),
    ({"sites": []}, r"got \[\]"),
    ({"images_per_site": 0}, "images_per_site needs a number from 1; got 0"),
    ({"rare_at_least": 0.6}, "from 0 .* to 0.5; got 0.6"),
])  # fmt: skip
def test_what_cannot_be_made_is_refused(tmp_path, argument, message):
    with pytest.raises(PhantomError, match=message):
        write_phantom(tmp_path / "p", **{"images_per_site": 40, "size": 16} | argument)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_left_alone_and_a_broken_run_leaves_none(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_phantom(tmp_path / "p", images_per_site=40, size=16, progress=stop)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(PhantomError, match="holds something; remove it"):
        write_phantom(tmp_path, images_per_site=40, size=16)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@sites
def test_images_are_those_of_truth_and_split_as_many_frontal_ones_as_asked_for(root, site):
    file, table, truth = read(root, site)
    assert list(truth.columns) == ["image", *UNION_CLASSES]
    assert sorted(truth["image"]) == sorted(table["image"])
    for image in table["image"]:
        with Image.open(file.images / image) as picture:
            assert (picture.mode, picture.size) == ("L", (32, 32))
    files = {f.relative_to(file.images).as_posix() for f in file.images.rglob("*.??g")}
    assert files == set(table["image"])
    frontal = table[table["view"].isin(FRONTAL)].reset_index(drop=True)
    # Some of MIMIC's views are blank or odd.
    assert (0.85 if site == "mimic" else 1) * IMAGES <= len(frontal) <= IMAGES
    assert (table["view"] == "lateral").any() == (site != "nih")
    rows = apply_split(read_split(file.split), frontal, site)
    assert len(rows) == len(frontal)
    shares = rows.groupby("patient")["split"].first().value_counts(normalize=True)
    assert shares[["train", "test"]].tolist() == pytest.approx([0.7, 0.2], abs=0.03)


@sites
def test_labels_never_contradict_the_truth_which_alone_has_unlabelled_findings(root, site):
    file, table, truth = read(root, site)
    names, truth = list(LABELLED[site]), truth.set_index("image")
    labels, there = table.set_index("image")[names], truth.loc[table["image"], names]
    assert (there[labels == 1] != 0).all(axis=None)
    assert (there[(labels == 0) | (labels == -2)] != 1).all(axis=None)
    assert file.dataset == {"mimic": "cxr-lt"}.get(site, site)
    unlabelled = sorted(set(UNION_CLASSES) - set(names))
    assert truth[unlabelled].any().all()
    assert not [name for name in unlabelled if name in file.labels[0].read_text()]


@sites
def test_pictures_show_the_chest_the_sex_and_the_unlabelled_findings_of_each_patient(root, site):
    file, table, truth = read(root, site)
    shown = pictures(file, table["image"])
    ap = (table["view"] == "AP").to_numpy()
    alike = np.corrcoef(shown[ap].reshape(ap.sum(), -1))
    patient = table["patient"].to_numpy()[ap]
    same, others = patient[:, None] == patient, ~np.eye(ap.sum(), dtype=bool)
    assert alike[same & others].mean() > alike[~same].mean() + 0.03
    if site != "mimic":  # which says nothing of sex
        frontal = table["view"].isin(FRONTAL)
        lower_zones = np.s_[:, 20:25, [6, 7, 8, 9, 22, 23, 24, 25]]
        brightness = pd.Series(shown[lower_zones].mean(axis=(1, 2)))[frontal]
        by_sex = brightness.groupby(table["sex"]).mean()
        assert by_sex["F"] > by_sex["M"] + 5  # breasts
    if site == "nih":  # which does not label the brightest thing in a lung field
        brightest = pd.Series(shown[:, 8:18, 8:24].max(axis=(1, 2)))
        there = truth["Support Devices"] == 1
        assert brightest[there].mean() > brightest[~there].mean() + 5
