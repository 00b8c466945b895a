from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.readers import nih
from cxr_study.phantom.patients.real_statistics import correlations, label_shares

REAL = Path(__file__).parents[4].parent / "shared/data/nih-metadata/Data_Entry_2017_v2020.csv.gz"


def test_nih_shares_are_counts_over_images_and_the_rest_is_from_cxr_lt():
    present = label_shares("nih", 0)["present"]
    assert present["Hernia"] == pytest.approx(227 / 112_120)
    assert present["Fracture"] == pytest.approx(11_883 / 264_849)


def test_half_of_the_uncertain_labels_are_findings_that_are_there():
    pneumonia = label_shares("chexpert", 0).loc["Pneumonia"]
    there = 4675 + 15_981 / 2
    assert pneumonia["present"] == pytest.approx(there / 191_027)
    assert pneumonia["uncertain_if_present"] == pytest.approx(15_981 / 2 / there)
    assert pneumonia["uncertain_if_absent"] == pytest.approx(15_981 / 2 / (191_027 - there))
    assert pneumonia["stated_if_absent"] == pytest.approx(1875 / (191_027 - there))


def test_mimic_is_counted_by_cxr_lt_and_doubted_as_chexpert():
    mimic, chexpert = label_shares("mimic", 0), label_shares("chexpert", 0)
    assert mimic["present"]["Edema"] == pytest.approx(38_574 / 264_849)
    assert mimic["uncertain_if_present"].equals(chexpert["uncertain_if_present"])


@pytest.mark.parametrize("site", ["nih", "chexpert", "mimic"])
def test_rare_findings_are_lifted_and_frequent_ones_are_not(site):
    real, lifted = (label_shares(site, floor)["present"] for floor in (0, 0.1))
    assert list(real.index) == list(UNION_CLASSES)
    assert lifted.min() == 0.1 > real.min()
    assert (lifted == real.clip(lower=0.1)).all()


def test_only_the_classes_of_chexpert_have_reports():
    shares = label_shares("nih", 0)
    assert set(shares.index[shares["uncertain_if_present"].notna()]) == set(CHEXPERT_CLASSES)


@pytest.mark.data
@pytest.mark.skipif(not REAL.is_file(), reason=f"no NIH metadata in {REAL}")
def test_the_counts_of_nih_are_those_of_the_official_file():
    real = nih.read(REAL)[list(NIH_CLASSES)].mean()
    assert label_shares("nih", 0)["present"][list(NIH_CLASSES)].to_numpy() == pytest.approx(
        real.to_numpy()
    )


def between(one, other):
    return correlations()[UNION_CLASSES.index(one), UNION_CLASSES.index(other)]


def test_they_are_correlations_of_a_distribution_that_exists():
    matrix = correlations()
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 1)
    assert np.linalg.eigvalsh(matrix).min() > 0.05


def test_pairs_that_nih_labels_are_nihs_own():
    assert between("Emphysema", "Pneumothorax") == 0.506
    assert between("Cardiomegaly", "Pneumothorax") == -0.173


def test_other_pairs_share_causes_and_the_severity():
    assert between("Lung Opacity", "Edema") == pytest.approx(0.3 * 0.3 + 0.3 * 0.6)
    assert between("Hernia", "Fracture") == pytest.approx(0.3 * 0.3)


@pytest.mark.data
@pytest.mark.skipif(not REAL.is_file(), reason=f"no NIH metadata in {REAL}")
def test_the_stored_correlations_give_the_pair_counts_of_the_official_file():
    labels = nih.read(REAL)[list(NIH_CLASSES)]
    n = len(labels)
    for one, other in combinations(NIH_CLASSES, 2):
        both = (labels[one] * labels[other]).sum()
        cuts = norm.ppf([labels[one].mean(), labels[other].mean()])
        r = between(one, other)
        expected = n * multivariate_normal.cdf(cuts, cov=[[1, r], [r, 1]])
        assert expected == pytest.approx(both, rel=0.01, abs=0.5), (one, other)
