import pandas as pd
import pytest
import yaml

from cxr_study.data.labels.class_sets import ClassSetError
from cxr_study.data.sites.partition import write_sites
from cxr_study.data.sites.patient_split import split_patients
from cxr_study.data.sites.site_data import check_disjoint, load_labels, read_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import read_split


@pytest.fixture
def pool(tmp_path):
    """A hospital's table: 40 patients with two images each, half of them with an edema."""
    (tmp_path / "images").mkdir()
    rows = [f"{p}_{i}.png,{p},{-(p % 2)},{p % 2}\n" for p in range(40) for i in range(2)]
    (tmp_path / "labels.csv").write_text("image,patient,Mass,Edema\n" + "".join(rows))
    keys = {
        "dataset": "table",
        "labels": "labels.csv",
        "images": "images",
        "split": "none.csv",
        "uncertain": {"default": "smooth-ones", "Mass": "ones"},
        "distinct": ["Mass"],
    }
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(keys))
    return read_site_file(tmp_path / "all.yaml")


SETS = (("Edema",), ("Edema", "Mass"))


def test_sites_have_different_patients_their_own_classes_and_the_pools_decisions(pool, tmp_path):
    paths = write_sites(pool, tmp_path / "cut", SETS, seed=0)
    assert [path.name for path in paths] == ["all-1.yaml", "all-2.yaml"]
    sites = [load_labels(read_site_file(path)) for path in paths]
    check_disjoint(sites)
    assert [site.site.classes for site in sites] == list(SETS)
    assert all(site.site.policy.uncertain == "smooth-ones" for site in sites)
    assert [dict(site.site.policy.by_class) for site in sites] == [{}, {"Mass": "ones"}]
    assert [site.site.distinct for site in sites] == [(), ("Mass",)]
    for site in sites:
        assert site.table["split"].value_counts().to_dict() == {
            "train": 28, "validation": 4, "test": 8,
        }  # fmt: skip
        assert site.table["Edema"].sum() == 20


def test_the_test_patients_do_not_depend_on_the_number_of_sites(pool, tmp_path):
    tested = []
    for number in (1, 2, 4):
        paths = write_sites(pool, tmp_path / str(number), SETS[-1:] * number, seed=0, share=0.5)
        tables = [load_labels(read_site_file(path)).table for path in paths]
        tested.append({p for table in tables for p in table["patient"][table["split"] == "test"]})
    whole = split_patients(read_labels(pool), seed=0)
    assert tested == [set(whole["patient"][whole["split"] == "test"])] * 3


def test_truth_has_every_class_of_every_image_where_it_is_certain(pool, tmp_path):
    path, _ = write_sites(pool, tmp_path / "cut", SETS, seed=0)
    truth = pd.read_csv(read_site_file(path).truth)
    assert list(truth) == ["image", "Mass", "Edema"]
    assert len(truth) == 80
    assert truth["Edema"].tolist() == [p % 2 for p in range(40) for _ in range(2)]


def test_a_share_of_the_training_patients_may_be_used(pool, tmp_path):
    path, _ = write_sites(pool, tmp_path / "cut", SETS, seed=0, share=0.5)
    table = load_labels(read_site_file(path)).table
    assert table.drop_duplicates("patient")["split"].value_counts().to_dict() == {
        "train": 7, "unused": 7, "test": 4, "validation": 2,
    }  # fmt: skip
    header = read_split(path.with_name("split.csv")).header
    assert header["scheme"] == (
        "2 sites with equally many patients, each 70/10/20; 0.5 of the training patients used"
    )


def test_a_class_that_the_labels_lack_is_refused_before_anything_is_written(pool, tmp_path):
    with pytest.raises(ClassSetError, match="site 2 is to hold 'Hernia'"):
        write_sites(pool, tmp_path / "cut", (("Edema",), ("Hernia",)), seed=0)
    assert not (tmp_path / "cut").exists()
