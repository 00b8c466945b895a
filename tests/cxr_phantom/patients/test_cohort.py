from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from cxr_phantom.drawing.rendering import SITES
from cxr_phantom.patients.cohort import correlations, label_shares, read_reports, sample_cohort
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.readers import nih

REAL = Path(__file__).parents[3].parent / "shared/data/nih-metadata/Data_Entry_2017_v2020.csv.gz"
sites = pytest.mark.parametrize("site", SITES)


def cohort(site="nih", frontals=2000, seed=0, **options):
    return sample_cohort(site, frontals, np.random.default_rng(seed), **options)


@pytest.mark.parametrize(("site", "frontals", "laterals"), [
    ("nih", 3.64, 0), ("chexpert", 2.96, 0.17), ("mimic", 3.72, 0.485),
])  # fmt: skip
def test_prevalence_is_as_asked_and_patients_have_images_as_real_ones(site, frontals, laterals):
    for rare in (0, 0.1):
        drawn = cohort(site, 40_000, rare_at_least=rare)
        wanted = label_shares(site, rare)["present"].to_numpy()
        assert np.abs(drawn.present.mean(axis=0) - wanted).max() < 0.015
    images = drawn.images
    assert 40_000 / images["person"].nunique() == pytest.approx(frontals, rel=0.05)
    assert images["lateral"].sum() / 40_000 == pytest.approx(laterals, rel=0.05)
    for exact in (1, 2, 500):
        assert (~cohort(site, exact).images["lateral"]).sum() == exact


@sites
def test_images_are_numbered_and_described_alike_within_examination_and_patient(site):
    drawn = cohort(site)
    images = drawn.images
    assert not images.duplicated(["person", "visit", "number"]).any()
    for inner, outer in (("number", ["study"]), ("visit", ["person"])):
        values = images.groupby(outer)[inner]
        assert (values.min() == 0).all()
        assert (values.max() + 1 == values.nunique()).all()
    assert images.sort_values(["person", "visit", "number"]).index.is_monotonic_increasing
    assert not images.groupby("study")["lateral"].first().any()
    assert (images.groupby("person")[["sex", "age"]].nunique() == 1).all(axis=None)
    assert (images.groupby("study")["device"].nunique() == 1).all()
    same = images["study"].diff() == 0
    assert (np.diff(drawn.present, axis=0)[same[1:]] == 0).all()
    assert set(images["sex"]) == {"F", "M"}
    assert images["age"].between(18, 94).all()


def test_views_are_those_of_device_and_site_and_laterals_come_with_most_pa_examinations():
    assert (cohort("nih").images["view"] == "PA").mean() == pytest.approx(0.6, abs=0.04)
    images = cohort("chexpert", 9000).images
    frontal = images[~images["lateral"]]
    assert (frontal["view"] == "PA").mean() == pytest.approx(0.15, abs=0.04)
    assert frontal.groupby("device")["view"].nunique().tolist() == [1, 1, 1]
    assert (images["view"][images["lateral"]] == "lateral").all()
    first = images.groupby("study").agg({"view": "first", "lateral": "any"})
    with_lateral = first.groupby("view")["lateral"].mean()
    assert with_lateral["PA"] == pytest.approx(0.9, abs=0.04)
    assert with_lateral["AP"] < 0.08


def test_findings_persist_from_visit_to_visit_and_show_more_or_less_plainly():
    drawn = cohort("chexpert", 20_000)
    mass = drawn.present[:, UNION_CLASSES.index("Mass")]
    visit = drawn.images["visit"].to_numpy()
    before, after = mass[:-1][visit[1:] > 0], mass[1:][visit[1:] > 0]
    assert after[before == 1].mean() > 3 * after[before == 0].mean()
    quarters = [0.25, 0.5, 0.75]
    for column in range(len(UNION_CLASSES)):
        shown = drawn.visibility[drawn.present[:, column] == 1, column]
        np.testing.assert_allclose(np.quantile(shown, quarters), quarters, atol=0.06)


@pytest.mark.data
@pytest.mark.skipif(not REAL.is_file(), reason=f"no NIH metadata in {REAL}")
def test_at_real_shares_findings_come_together_as_often_as_in_the_official_file():
    real = nih.read(REAL)[list(NIH_CLASSES)].to_numpy()
    columns = [UNION_CLASSES.index(name) for name in NIH_CLASSES]
    drawn = cohort(frontals=len(real), rare_at_least=0).present[:, columns]
    healthy = [(labels.sum(axis=1) == 0).mean() for labels in (drawn, real)]
    assert healthy[0] == pytest.approx(healthy[1], abs=0.02)
    for one, other in combinations(range(len(columns)), 2):
        wanted, seen = ((x[:, one] * x[:, other]).sum() for x in (real, drawn))
        # Images of a patient are alike, so counts scatter about twice as much as Poisson's.
        assert abs(seen - wanted) < 8 * np.sqrt(wanted) + 4, (NIH_CLASSES[one], NIH_CLASSES[other])


@pytest.fixture(scope="module")
def patients():
    return sample_cohort("chexpert", 30_000, np.random.default_rng(0), rare_at_least=0)


@pytest.fixture(scope="module")
def reports(patients):
    return read_reports(patients, "chexpert", 0, np.random.default_rng(1))


@pytest.mark.parametrize(("name", "positive", "negative", "uncertain"), [
    ("Pneumonia", 4675, 1875, 15_981), ("Consolidation", 12_983, 19_608, 24_381),
    ("Pneumothorax", 17_693, 47_823, 2708), ("Support Devices", 107_170, 5340, 915),
])  # fmt: skip
def test_shares_are_those_of_the_official_file(reports, name, positive, negative, uncertain):
    for value, count in ((POSITIVE, positive), (NEGATIVE, negative), (UNCERTAIN, uncertain)):
        assert (reports[name] == value).mean() == pytest.approx(count / 191_027, abs=0.012)


def test_positive_is_true_negative_and_blank_not_and_half_of_the_uncertain(patients, reports):
    for name in CHEXPERT_CLASSES:
        present = patients.present[:, UNION_CLASSES.index(name)]
        assert present[reports[name] == POSITIVE].all()
        assert not present[(reports[name] == NEGATIVE) | (reports[name] == BLANK)].any()
    doubted = patients.present[reports["Atelectasis"] == UNCERTAIN]
    share = doubted[:, UNION_CLASSES.index("Atelectasis")].mean()
    assert share == pytest.approx(0.5, abs=0.04)
    same = np.diff(patients.images["study"]) == 0  # images of an examination
    assert same.any()
    assert all((labels[1:] == labels[:-1])[same].all() for labels in reports.values())


def test_what_hardly_shows_is_doubted_more_and_no_finding_allows_only_devices(patients, reports):
    for name in ("Atelectasis", "Pneumonia"):  # fewer and more than half doubted
        column = UNION_CLASSES.index(name)
        present = patients.present[:, column] == 1
        doubted = (reports[name] == UNCERTAIN)[present]
        faint = patients.visibility[present, column] < 0.5
        assert doubted[faint].mean() > doubted[~faint].mean() + 0.2
    disease = [reports[name] for name in CHEXPERT_CLASSES if name != "Support Devices"]
    found = np.isin(disease, (POSITIVE, UNCERTAIN)).any(axis=0)
    np.testing.assert_array_equal(reports["No Finding"], np.where(found, BLANK, POSITIVE))
    assert (reports["Support Devices"][~found] == POSITIVE).any()


def test_shares_are_counts_over_images_and_those_of_unlabelled_classes_from_cxr_lt():
    present = label_shares("nih", 0)["present"]
    assert present["Hernia"] == pytest.approx(227 / 112_120)
    assert present["Fracture"] == pytest.approx(11_883 / 264_849)
    mimic, chexpert = label_shares("mimic", 0), label_shares("chexpert", 0)
    assert mimic["present"]["Edema"] == pytest.approx(38_574 / 264_849)
    assert mimic["uncertain_if_present"].equals(chexpert["uncertain_if_present"])


@sites
def test_rare_findings_are_lifted_and_frequent_ones_are_not(site):
    real, lifted = (label_shares(site, floor)["present"] for floor in (0, 0.1))
    assert list(real.index) == list(UNION_CLASSES)
    assert lifted.min() == 0.1 > real.min()
    assert (lifted == real.clip(lower=0.1)).all()


def between(one, other):
    return correlations()[UNION_CLASSES.index(one), UNION_CLASSES.index(other)]


def test_correlations_are_nihs_own_or_follow_from_causes_and_exist():
    matrix = correlations()
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 1)
    assert np.linalg.eigvalsh(matrix).min() > 0.05
    assert between("Emphysema", "Pneumothorax") == 0.506
    assert between("Cardiomegaly", "Pneumothorax") == -0.173
    assert between("Lung Opacity", "Edema") == pytest.approx(0.3 * 0.3 + 0.3 * 0.6)
    assert between("Hernia", "Fracture") == pytest.approx(0.3 * 0.3)


@pytest.mark.data
@pytest.mark.skipif(not REAL.is_file(), reason=f"no NIH metadata in {REAL}")
def test_the_stored_numbers_give_the_counts_of_the_official_file():
    labels = nih.read(REAL)[list(NIH_CLASSES)]
    shares = label_shares("nih", 0)["present"][list(NIH_CLASSES)]
    assert shares.to_numpy() == pytest.approx(labels.mean().to_numpy())
    for one, other in combinations(NIH_CLASSES, 2):
        both = (labels[one] * labels[other]).sum()
        cuts = norm.ppf([labels[one].mean(), labels[other].mean()])
        r = between(one, other)
        expected = len(labels) * multivariate_normal.cdf(cuts, cov=[[1, r], [r, 1]])
        assert expected == pytest.approx(both, rel=0.01, abs=0.5), (one, other)
