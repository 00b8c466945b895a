import numpy as np
import pytest

from cxr_study.phantom.cohort import PREVALENCE, sample_cohort
from cxr_study.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES

LABELLED = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES}


def cohort(site="nih", images=2000, seed=0):
    return sample_cohort(site, images, np.random.default_rng(seed))


@pytest.mark.parametrize("site", LABELLED)
def test_prevalence_is_what_the_table_says(site):
    seen = cohort(site, 20000)[list(UNION_CLASSES)].mean()
    for name, prevalence in PREVALENCE[site].items():
        assert seen[name] == pytest.approx(prevalence, abs=0.02), name


@pytest.mark.parametrize("site", LABELLED)
def test_every_finding_is_frequent_enough_to_evaluate(site):
    assert cohort(site)[list(UNION_CLASSES)].mean().between(0.06, 0.40).all()


@pytest.mark.parametrize("site", LABELLED)
def test_about_a_third_of_the_patients_have_no_labelled_finding(site):
    table = cohort(site, 6000)
    positive = table.groupby("person")[list(LABELLED[site])].max().max(axis=1)
    assert 0.27 < 1 - positive.mean() < 0.43


@pytest.mark.parametrize("images", [1, 2, 500])
def test_number_of_images_is_exact(images):
    assert len(cohort(images=images)) == images


def test_patients_have_about_three_images_numbered_from_zero():
    table = cohort(images=9000)
    counts = table.groupby("person").size()
    assert 2.7 < counts.mean() < 3.3
    assert (counts == 1).mean() > 0.2
    assert (table.groupby("person")["visit"].max() + 1 == counts).all()
    assert not table.duplicated(["person", "visit"]).any()


def test_sex_and_age_belong_to_the_patient():
    table = cohort()
    assert (table.groupby("person")[["sex", "age"]].nunique() == 1).all(axis=None)
    assert set(table["sex"]) == {"F", "M"}
    assert table["age"].between(18, 94).all()


def test_most_chexpert_pictures_are_ap_and_most_nih_pictures_are_pa():
    assert (cohort("nih")["view"] == "PA").mean() > 0.65
    assert (cohort("chexpert")["view"] == "AP").mean() > 0.75


def test_findings_persist_from_visit_to_visit():
    table = cohort(images=9000)
    first = table[table["visit"] == 0].set_index("person")["Mass"]
    second = table[table["visit"] == 1].set_index("person")["Mass"]
    first = first[second.index]
    assert second[first == 1].mean() > 3 * second[first == 0].mean()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Edema", "Pleural Effusion"),
        ("Edema", "Cardiomegaly"),
        ("Consolidation", "Pneumonia"),
        ("Lung Opacity", "Consolidation"),
        ("Lung Opacity", "Edema"),
    ],
)
def test_what_belongs_together_comes_together_but_not_always(one, other):
    table = cohort(images=9000)
    table = table[table[list(UNION_CLASSES)].any(axis=1)]  # healthy patients would correlate all
    correlation = np.corrcoef(table[one], table[other])[0, 1]
    unrelated = np.corrcoef(table["Hernia"], table["Fracture"])[0, 1]
    assert max(unrelated, 0) + 0.05 < correlation < 0.6
