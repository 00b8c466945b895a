import hashlib

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_study.data import readers
from cxr_study.data.labels.label_table import FRONTAL
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import apply_split, read_split
from cxr_study.phantom.drawing.acquisition import SITES
from cxr_study.phantom.writers.pictures import KINDS
from cxr_study.phantom.writers.write_phantom import PhantomError, write_phantom

IMAGES, CORRUPT = 120, 7
OPTIONS = {"images_per_site": IMAGES, "size": 32, "seed": 3, "sites": tuple(SITES)}
LABELLED = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES, "mimic": UNION_CLASSES}
sites = pytest.mark.parametrize("site", SITES)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("phantom") / "data"
    write_phantom(root, **OPTIONS)
    return root


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    root = tmp_path_factory.mktemp("phantom") / "data"
    write_phantom(root, **OPTIONS, corrupt=CORRUPT)
    return root


def hashes(root):
    return {
        file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in root.rglob("*")
        if file.is_file()
    }


def site_of(root, site):
    return read_site_file(root / "sites" / f"{site}.yaml")


def table_of(root, site):
    site_file = site_of(root, site)
    return readers.read(site_file.dataset, site_file.labels)


def truth_of(root, site):
    return pd.read_csv(root / "truth" / f"{site}.csv")


def pictures_of(root, site, images):
    files = [site_of(root, site).images / image for image in images]
    return np.array([np.asarray(Image.open(file)) for file in files], dtype=float)


class TestArguments:
    def test_same_arguments_same_bytes_and_another_seed_other_bytes(self, root, tmp_path):
        write_phantom(tmp_path / "again", **OPTIONS)
        write_phantom(tmp_path / "other", **OPTIONS | {"seed": 4})
        assert hashes(tmp_path / "again") == hashes(root)
        assert hashes(tmp_path / "other")["truth/nih.csv"] != hashes(root)["truth/nih.csv"]

    def test_a_site_does_not_depend_on_the_others(self, root, tmp_path):
        write_phantom(tmp_path / "one", **OPTIONS | {"sites": ["mimic"]})
        one, three = hashes(tmp_path / "one"), hashes(root)
        assert one == {path: three[path] for path in three if "mimic" in path.split("_")[0]}

    def test_progress_ends_at_the_total_with_laterals_and_real_shares_are_rare(self, tmp_path):
        calls, root = [], tmp_path / "p"
        options = {"images_per_site": 400, "size": 8, "rare_at_least": 0}
        write_phantom(root, **options, progress=lambda *call: calls.append(call))
        total = sum(len(truth_of(root, site)) for site in ("nih", "chexpert"))
        assert total > 800 and not (root / "mimic").exists()
        assert calls[-1] == (total, total)
        assert calls == sorted(calls)
        assert truth_of(root, "nih")["Hernia"].mean() < 0.02

    @pytest.mark.parametrize(
        ("argument", "message"),
        [
            ({"sites": ["nih", "vindr"]}, r"some of nih, chexpert, mimic.*got \['nih', 'vindr'\]"),
            ({"sites": ["nih", "nih"]}, "each once"),
            ({"sites": "nih"}, "each once; got nih"),
            ({"sites": []}, r"got \[\]"),
            ({"images_per_site": 0}, "images_per_site needs a number from 1; got 0"),
            ({"rare_at_least": 0.6}, "from 0 .* to 0.5; got 0.6"),
            ({"corrupt": 40}, "less than images_per_site, which is 40; got 40"),
            ({"corrupt": -1}, "got -1"),
        ],
    )
    def test_what_cannot_be_made_is_refused(self, tmp_path, argument, message):
        with pytest.raises(PhantomError, match=message):
            write_phantom(tmp_path / "p", **{"images_per_site": 40, "size": 16} | argument)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_holds_something_is_left_alone_and_a_broken_run_leaves_none(
        self, tmp_path
    ):
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
class TestSites:
    def test_the_reader_finds_every_image_of_the_truth_and_no_other(self, root, site):
        table, truth = table_of(root, site), truth_of(root, site)
        assert list(truth.columns) == ["image", *UNION_CLASSES]
        assert set(truth["image"]) == set(table["image"])
        assert len(truth) == len(table)
        folder = site_of(root, site).images
        for image in table["image"]:
            with Image.open(folder / image) as picture:
                assert (picture.mode, picture.size) == ("L", (32, 32))
        files = [f for f in folder.rglob("*") if f.suffix in (".png", ".jpg")]
        assert {f.relative_to(folder).as_posix() for f in files} == set(table["image"])

    def test_the_split_fits_as_many_frontal_images_as_asked_for(self, root, site):
        table = table_of(root, site)
        frontal = table[table["view"].isin(FRONTAL)].reset_index(drop=True)
        # Some of MIMIC's views are blank or odd.
        assert (0.85 if site == "mimic" else 1) * IMAGES <= len(frontal) <= IMAGES
        assert (table["view"] == "lateral").any() == (site != "nih")
        rows = apply_split(read_split(site_of(root, site).split), frontal, site)
        assert len(rows) == len(frontal)
        shares = rows.groupby("patient")["split"].first().value_counts(normalize=True)
        assert shares["train"] == pytest.approx(0.7, abs=0.03)
        assert shares["test"] == pytest.approx(0.2, abs=0.03)

    def test_labels_never_contradict_the_truth_which_alone_has_unlabelled_findings(
        self, root, site
    ):
        names = list(LABELLED[site])
        table = table_of(root, site).set_index("image")[names]
        whole = truth_of(root, site).set_index("image")
        truth = whole.loc[table.index, names]
        assert (truth[table == 1] != 0).all(axis=None)
        assert (truth[(table == 0) | (table == -2)] != 1).all(axis=None)
        assert site_of(root, site).dataset == {"mimic": "cxr-lt"}.get(site, site)
        unlabelled = sorted(set(UNION_CLASSES) - set(names))
        assert whole[unlabelled].any().all()
        text = site_of(root, site).labels[0].read_text()
        assert not [name for name in unlabelled if name in text]


class TestPictures:
    def test_unlabelled_findings_are_drawn(self, root):
        # A support device is the brightest thing in a lung field; NIH does not label it.
        truth = truth_of(root, "nih")
        pictures = pictures_of(root, "nih", truth["image"])
        brightest = pd.Series(pictures[:, 8:18, 8:24].max(axis=(1, 2)))
        there = truth["Support Devices"] == 1
        assert brightest[there].mean() > brightest[~there].mean() + 5

    @sites
    def test_visits_of_a_patient_show_the_same_chest(self, root, site):
        table = table_of(root, site)
        table = table[table["view"] == "AP"]
        pictures = pictures_of(root, site, table["image"])
        alike = np.corrcoef(pictures.reshape(len(pictures), -1))
        same = table["patient"].to_numpy()[:, None] == table["patient"].to_numpy()
        others = ~np.eye(len(table), dtype=bool)
        assert alike[same & others].mean() > alike[~same].mean() + 0.03

    @pytest.mark.parametrize("site", ["nih", "chexpert"])
    def test_women_are_drawn_with_breasts(self, root, site):
        table = table_of(root, site)
        table = table[table["view"].isin(FRONTAL)]
        lower_zones = np.s_[:, 20:25, [6, 7, 8, 9, 22, 23, 24, 25]]
        brightness = pictures_of(root, site, table["image"])[lower_zones].mean(axis=(1, 2))
        by_sex = pd.Series(brightness).groupby(table["sex"].to_numpy()).mean()
        assert by_sex["F"] > by_sex["M"] + 5


class TestCorruption:
    @sites
    def test_what_is_damaged_is_listed_and_everything_else_is_as_without(self, root, damaged, site):
        listed = pd.read_csv(damaged / "truth" / f"{site}_corrupt.csv", keep_default_na=False)
        assert sorted(listed["damage"]) == sorted([*KINDS, KINDS[0]])
        folder = site_of(root, site).images.relative_to(root)
        before, after = hashes(root / folder), hashes(damaged / folder)
        assert set(after) <= set(before)
        changed = {path for path in before if before[path] != after.get(path)}
        assert changed == set(listed["image"])
        assert len(changed) == CORRUPT
        views = table_of(damaged, site).set_index("image").loc[listed["image"], "view"]
        assert not (views == "lateral").any()  # a site would use all that are damaged
        assert not list((root / "truth").glob("*_corrupt.csv"))
