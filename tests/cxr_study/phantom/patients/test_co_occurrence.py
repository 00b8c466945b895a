from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES
from cxr_study.data.readers import nih
from cxr_study.phantom.patients.co_occurrence import correlations

REAL = Path(__file__).parents[4].parent / "shared/data/nih-metadata/Data_Entry_2017_v2020.csv.gz"


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
