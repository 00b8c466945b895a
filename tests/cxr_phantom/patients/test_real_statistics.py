from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from cxr_phantom.patients.real_statistics import correlations, label_shares
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.data.readers import nih

REAL = Path(__file__).parents[3].parent / "shared/data/nih-metadata/Data_Entry_2017_v2020.csv.gz"


def test_shares_are_counts_over_images_and_those_of_unlabelled_classes_from_cxr_lt():
    present = label_shares("nih", 0)["present"]
    assert present["Hernia"] == pytest.approx(227 / 112_120)
    assert present["Fracture"] == pytest.approx(11_883 / 264_849)
    mimic, chexpert = label_shares("mimic", 0), label_shares("chexpert", 0)
    assert mimic["present"]["Edema"] == pytest.approx(38_574 / 264_849)
    assert mimic["uncertain_if_present"].equals(chexpert["uncertain_if_present"])


def test_half_of_the_uncertain_labels_are_findings_that_are_there():
    shares = label_shares("chexpert", 0)
    there = 4675 + 15_981 / 2
    assert shares.loc["Pneumonia"].to_dict() == pytest.approx(
        {
            "present": there / 191_027,
            "uncertain_if_present": 15_981 / 2 / there,
            "uncertain_if_absent": 15_981 / 2 / (191_027 - there),
            "stated_if_absent": 1875 / (191_027 - there),
        }
    )
    assert set(shares.index[shares["uncertain_if_present"].notna()]) == set(CHEXPERT_CLASSES)


@pytest.mark.parametrize("site", ["nih", "chexpert", "mimic"])
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
