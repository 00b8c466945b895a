from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_studies.partition.class_sets import published
from cxr_studies.partition.partition import split_sites, write_nih_pool, write_sites
from cxr_studies.partition.skew import Skew
from cxr_study.common.errors import InputError
from cxr_study.data.images.image_files import ImageError
from cxr_study.data.labels.vocabulary import NIH_CLASSES
from cxr_study.data.sites.patient_split import split_patients
from cxr_study.data.sites.site_data import check_disjoint, load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import read_split
from site_files import write_site

MINI = Path(__file__).parents[3].parent / "shared/data/nih-mini"
HEADER = "Image Index,Finding Labels,Patient ID,Patient Age,Patient Gender,View Position,\n"
SETS = (("Edema",), ("Edema", "Mass"))


@pytest.fixture
def pool(tmp_path):
    """A hospital's table: 40 patients with two images each, half of them with an edema."""
    (tmp_path / "images").mkdir()
    rows = [f"{p}_{i}.png,{p},{-(p % 2)},{p % 2}\n" for p in range(40) for i in range(2)]
    (tmp_path / "labels.csv").write_text("image,patient,Mass,Edema\n" + "".join(rows))
    policy = {"default": "smooth-ones", "Mass": "ones"}
    keys = {"split": "none.csv", "blank": None, "uncertain": policy, "distinct": ["Mass"]}
    keys |= {"bits": 12, "contradictions": "refuse", "views": "all", "bad_images": "1%"}
    return read_site_file(write_site(tmp_path, "all", **keys))


def load(paths):
    return [load_labels(read_site_file(path)) for path in paths]


def test_sites_have_different_patients_their_own_classes_and_the_pools_decisions(pool, tmp_path):
    paths = write_sites(pool, tmp_path / "cut", SETS, seed=0)
    assert [path.name for path in paths] == ["all-1.yaml", "all-2.yaml"]
    assert [len(lacking) for lacking in paths.values()] == [0, 1]  # Mass is never positive
    sites = load(paths)
    check_disjoint(sites)
    assert [site.site.classes for site in sites] == list(SETS)
    assert all(site.site.policy.uncertain == "smooth-ones" for site in sites)
    assert [dict(site.site.policy.by_class) for site in sites] == [{}, {"Mass": "ones"}]
    assert [site.site.distinct for site in sites] == [(), ("Mass",)]
    changed = {"split", "truth", "classes", "distinct", "uncertain"}
    for site in sites:
        assert site.site.model_dump(exclude=changed) == pool.model_dump(exclude=changed)
    for site in sites:
        counts = site.table["split"].value_counts().to_dict()
        assert counts == {"train": 28, "validation": 4, "test": 8}
        assert site.table["Edema"].sum() == 20
    # The truth has every class of every image, where it is certain.
    truth = pd.read_csv(sites[0].site.truth)
    assert list(truth) == ["image", "Mass", "Edema"]
    assert truth["Edema"].tolist() == [p % 2 for p in range(40) for _ in range(2)]


def test_sites_keep_how_the_pools_table_is_written(tmp_path):
    (tmp_path / "images").mkdir()
    rows = [f"{p}.png,{p},{'Mass' if p % 2 else 'kein'}:Edema,0.{p + 10}\n" for p in range(40)]
    (tmp_path / "labels.csv").write_text("Bild,patient,found,p\n" + "".join(rows))
    keys = {"columns": {"Bild": "image", "patient": "ignored"}, "patients": "each-image"}
    keys |= {"words": {"kein": ""}, "threshold": 0.3}
    keys["findings"] = {"column": "found", "separator": ":", "value": "p"}
    pool = write_site(tmp_path, "all", split="none.csv", **keys)
    for labels in load(write_sites(read_site_file(pool), tmp_path / "cut", SETS, seed=0)):
        assert labels.table["Edema"].isin([0, 1]).all()


def test_a_share_of_the_training_patients_may_be_used(pool, tmp_path):
    path, _ = write_sites(pool, tmp_path / "cut", SETS, seed=0, share=0.5)
    table = load([path])[0].table
    counts = table.drop_duplicates("patient")["split"].value_counts().to_dict()
    assert counts == {"train": 7, "unused": 7, "test": 4, "validation": 2}


@pytest.mark.parametrize(("skew", "scheme", "how"), [
    (None, "2 sites with equally many patients, each 70/10/20", {}),
    (Skew("quantity", 1), "2 sites with patients in Dirichlet(1) shares, each 70/10/20", {}),
    (Skew("label", 0.3),
     "2 sites with patients of each rarest finding in Dirichlet(0.3) shares, each 70/10/20; 0.5 of "
     "the training patients used", {"share": 0.5}),
])  # fmt: skip
def test_the_split_file_says_how_it_was_cut_and_who_got_what(pool, tmp_path, skew, scheme, how):
    paths = list(write_sites(pool, tmp_path / "cut", SETS, seed=7, skew=skew, **how))
    header = read_split(tmp_path / "cut/split.csv").header
    assert (header["scheme"], header["seed"]) == (scheme, 7)
    for name, labels in zip(("all-1", "all-2"), load(paths), strict=True):
        used = labels.table[labels.table["split"] != "unused"]
        edema = used["patient"][used["Edema"] == 1].nunique()
        assert header["positives"][name] == {"Mass": 0, "Edema": edema}
        of_splits = header["counts"][name].values()
        assert sum(part["images"] for part in of_splits) == len(labels.table)


def test_a_class_that_the_labels_do_not_have_is_refused_before_anything_is_written(pool, tmp_path):
    with pytest.raises(InputError, match=r"site 2 is to label 'Masss'.*nearest known: Mass"):
        write_sites(pool, tmp_path / "cut", (("Edema",), ("Masss",)), seed=0)
    assert not (tmp_path / "cut").exists()


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


def two_sites(nih, folder, seed=0):
    """Label tables of NIH cut into two sites, after a look at their files."""
    pool = read_site_file(write_nih_pool(nih, folder))
    paths = list(write_sites(pool, folder / "sites", published(2), seed=seed))
    assert [path.name for path in paths] == ["nih-1.yaml", "nih-2.yaml"]
    sites = load(paths)
    assert tuple(site.site.classes for site in sites) == published(2)
    for site in sites:
        assert set(site.table["split"]) == {"train", "validation", "test"}
        truth = pd.read_csv(site.site.truth)
        assert list(truth) == ["image", *NIH_CLASSES]
        here = truth.set_index("image").loc[site.table["image"], list(site.site.classes)]
        assert (here.to_numpy() == site.table[list(site.site.classes)].to_numpy()).all()
    return [site.table for site in sites]


def test_patients_are_distributed_by_seed_and_rows_without_image_left_out(nih, tmp_path):
    cuts = [two_sites(nih, tmp_path / str(i), seed) for i, seed in enumerate([0, 0, 1])]
    assert [table["patient"].nunique() for table in cuts[0]] == [20, 20]
    assert [table["Mass"].sum() for table in cuts[0]] == [10, 10]
    assert all(table["image"].str.endswith("_000.png").all() for table in cuts[0])
    first = [tables[0]["image"].tolist() for tables in cuts]
    assert first[0] == first[1] != first[2]
    (nih / "images_001").rename(tmp_path / "elsewhere")
    with pytest.raises(ImageError, match=r"none of the 80 images .* first 00000000_000\.png"):
        write_nih_pool(nih, tmp_path / "out")


@pytest.mark.data
@pytest.mark.skipif(not MINI.is_dir(), reason=f"no NIH images in {MINI}")
def test_the_real_images_make_two_sites(tmp_path):
    tables = two_sites(MINI, tmp_path)
    assert [table["patient"].nunique() for table in tables] == [132, 132]
    assert sum(len(table) for table in tables) == 1000


def table(positive, images=1):
    """One patient per entry, with this label of Mass and so many images."""
    patients = np.repeat([f"p{number:03}" for number in range(len(positive))], images)
    images = [f"{number}.png" for number in range(len(patients))]
    labels = np.repeat(np.array(positive, dtype=float), len(images) // len(positive))
    about = {"view": "", "sex": "", "age": np.nan, "Mass": labels}
    return pd.DataFrame({"image": images, "patient": patients, **about})


@given(st.integers(1, 10), st.integers(0, 150), st.integers(0, 3))
def test_any_number_of_sites_has_the_same_splits_and_cuts_strata_alike(sites, positives, seed):
    rows = table([1] * positives + [0] * (150 - positives), images=2)
    names = [f"site-{number}" for number in range(sites)]
    frame = split_sites(rows, names, seed=seed)
    pd.testing.assert_frame_equal(frame, split_sites(rows[::-1], names, seed=seed))
    whole = split_patients(rows, seed=seed)
    pd.testing.assert_frame_equal(frame[["patient", "split"]], whole)
    positive = frame["patient"] < f"p{positives:03}"
    of_stratum = pd.crosstab([frame["split"], positive], frame["site"])
    of_split = of_stratum.groupby("split").sum()
    for counts in (of_stratum, of_split, of_split.sum().to_frame().T):
        counts = counts.reindex(columns=names, fill_value=0)
        assert (counts.max(axis=1) - counts.min(axis=1)).max() <= 1


def test_neighbours_in_the_table_are_at_either_site():
    frame = split_sites(table([0] * 200), ["a", "b"], seed=0)
    training = frame["site"][frame["split"] == "train"]
    assert 20 < (training[:70] == "a").sum() < 50
    assert training[::2].nunique() == 2


def test_fewer_patients_than_sites_are_refused_with_the_split():
    rows = table([1, 0] * 10)
    assert split_sites(rows, ["a", "b"], seed=0)["site"].nunique() == 2
    with pytest.raises(InputError, match="'validation' has 2 of the 20 patients for 3 s"):
        split_sites(rows, ["a", "b", "c"], seed=0)


@pytest.mark.parametrize("skew", [Skew("quantity", 1), Skew("label", 0.5)], ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_with_a_skew_patients_keep_their_splits_and_stand_at_one_site(skew, seed):
    rows = table([1] * 500 + [0] * 500, images=2)
    frame = split_sites(rows, ["a", "b", "c"], seed=seed, skew=skew)
    other = split_sites(rows[::-1], ["a", "b", "c"], seed=seed, skew=skew)
    pd.testing.assert_frame_equal(frame, other)
    whole = split_patients(rows, seed=seed)
    pd.testing.assert_frame_equal(frame[["patient", "split"]], whole)
    assert pd.crosstab(frame["split"], frame["site"]).to_numpy().all()
    sizes = frame["site"].value_counts()
    assert sizes.max() > 1.2 * sizes.min()
    of_site = (frame["patient"] < "p500").groupby(frame["site"]).mean()  # that are positive
    assert (of_site.max() - of_site.min() < 0.02) == (skew.by == "quantity")
