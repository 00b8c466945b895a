import numpy as np
import pytest

from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, UNION_CLASSES
from cxr_study.phantom.patients.cohort import sample_cohort
from cxr_study.phantom.writers.reports import read_reports


@pytest.fixture(scope="module")
def cohort():
    return sample_cohort("chexpert", 30_000, np.random.default_rng(0), rare_at_least=0)


@pytest.fixture(scope="module")
def reports(cohort):
    return read_reports(cohort, "chexpert", 0, np.random.default_rng(1))


def share(labels, value):
    return (labels == value).mean()


@pytest.mark.parametrize(
    ("name", "positive", "negative", "uncertain"),
    [
        ("Pneumonia", 4675, 1875, 15_981),
        ("Consolidation", 12_983, 19_608, 24_381),
        ("Pneumothorax", 17_693, 47_823, 2708),
        ("Support Devices", 107_170, 5340, 915),
    ],
)
def test_shares_are_those_of_the_official_file(reports, name, positive, negative, uncertain):
    for value, count in ((POSITIVE, positive), (NEGATIVE, negative), (UNCERTAIN, uncertain)):
        assert share(reports[name], value) == pytest.approx(count / 191_027, abs=0.012)


def test_all_images_of_a_study_have_the_same_labels(cohort, reports):
    same = np.diff(cohort.images["study"]) == 0
    assert same.any()
    for labels in reports.values():
        assert (labels[1:] == labels[:-1])[same].all()


def test_positive_is_true_negative_and_blank_are_not_and_half_of_the_uncertain_are(cohort, reports):
    for name in CHEXPERT_CLASSES:
        present = cohort.present[:, UNION_CLASSES.index(name)]
        assert present[reports[name] == POSITIVE].all()
        assert not present[(reports[name] == NEGATIVE) | (reports[name] == BLANK)].any()
    doubted = reports["Atelectasis"] == UNCERTAIN
    assert cohort.present[doubted, UNION_CLASSES.index("Atelectasis")].mean() == pytest.approx(
        0.5, abs=0.04
    )


@pytest.mark.parametrize("name", ["Atelectasis", "Pneumonia"])  # fewer and more than half doubted
def test_what_hardly_shows_is_doubted_more_often(cohort, reports, name):
    column = UNION_CLASSES.index(name)
    present = cohort.present[:, column] == 1
    doubted = (reports[name] == UNCERTAIN)[present]
    faint = cohort.visibility[present, column] < 0.5
    assert doubted[faint].mean() > doubted[~faint].mean() + 0.2


def test_no_finding_allows_nothing_but_support_devices(reports):
    disease = [reports[name] for name in CHEXPERT_CLASSES if name != "Support Devices"]
    found = np.isin(disease, (POSITIVE, UNCERTAIN)).any(axis=0)
    np.testing.assert_array_equal(reports["No Finding"], np.where(found, BLANK, POSITIVE))
    assert (reports["Support Devices"][~found] == POSITIVE).any()
