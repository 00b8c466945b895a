import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit

from surgical_aggregation.site.training import column_refit
from surgical_aggregation.site.training.column_refit import FeatureSplit, best_refit, refit_columns

SLOPES = np.array([1.5, -2.0, 0.0, 0.5])


def split(seed=0, images=200, classes=2, scale=(1.0, 10.0, 0.1, 3.0)):
    """Features of different scales; labels by the logistic model of standardised ones."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(images, 4))
    labels = rng.random((images, classes)) < expit(z @ SLOPES)[:, None]
    features = z * np.array(scale) + 2.0
    return FeatureSplit(features.astype(np.float32), labels.astype(np.float32))


def received(classes=2, seed=5):
    rng = np.random.default_rng(seed)
    drawn = rng.normal(scale=0.2, size=(5, classes)).astype(np.float32)
    return drawn[:-1], drawn[-1]


def objective(data, kernel, bias, before, penalty, weights=(1.0, 1.0)):
    """The docstring's formula, column by column."""
    total, deviation = 0.0, data.features.std(axis=0)
    for c in range(len(bias)):
        known = ~np.isnan(data.labels[:, c])
        p = expit(data.features[known] @ kernel[:, c] + bias[c])
        y = data.labels[known, c]
        cross_entropy = -(weights[1] * y * np.log(p) + weights[0] * (1 - y) * np.log(1 - p))
        moved = deviation * (kernel[:, c] - before[:, c])
        total += cross_entropy.mean() + penalty / 2 * (moved**2).sum()
    return total


@pytest.mark.parametrize("penalty", [1.0, 0.01])
@pytest.mark.parametrize("balanced", [False, True])
def test_it_is_the_minimum_of_the_stated_objective(penalty, balanced):
    data, (kernel, bias) = split(), received()
    data.labels[::3, 0] = np.nan
    weights = np.array([[0.5, 0.5], [2.0, 2.0]]) if balanced else None
    found = refit_columns(data, kernel.astype(float), bias.astype(float), penalty, weights)
    flat = np.concatenate([part.ravel() for part in found])
    wide = FeatureSplit(data.features.astype(float), data.labels)

    def at(x):
        kinds = (0.5, 2.0) if balanced else (1.0, 1.0)
        return objective(wide, x[:8].reshape(4, 2), x[8:], kernel, penalty, kinds)

    assert np.abs(approx_fprime(flat, at, 1e-6)).max() < 1e-3
    for step in np.random.default_rng(0).normal(scale=0.05, size=(20, 10)):
        assert at(flat + step) > at(flat)


def test_the_scale_of_a_feature_makes_no_difference_and_a_constant_one_keeps_its_weight():
    data, (kernel, bias) = split(), received()
    scale = np.float32([1, 100, 0.01, 1])
    wide = FeatureSplit(data.features * scale, data.labels)
    one, _ = refit_columns(data, kernel, bias, 0.1)
    other, _ = refit_columns(wide, kernel / scale[:, None], bias, 0.1)
    np.testing.assert_allclose(other * scale[:, None], one, rtol=1e-2, atol=1e-4)
    data.features[:, 2] = 7
    flat, _ = refit_columns(data, kernel, bias, 0.1)
    np.testing.assert_array_equal(flat[2], kernel[2])
    assert flat.dtype == np.float32 and np.isfinite(flat).all()


THREADS = """
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from surgical_aggregation.site.training import column_refit

def threads():
    return {each["filepath"]: each["num_threads"] for each in threadpool_info()}

def seen(logits, probability=column_refit._probability):
    during.update(threads())
    return probability(logits)

during, column_refit._probability = {}, seen
threadpool_limits(2)
data = column_refit.FeatureSplit(np.float32([[1], [2], [4]]), np.float32([[0], [1], [0]]))
column_refit.refit_columns(data, np.zeros((1, 1)), np.zeros(1), 0.1)
print(len(during), *during.values(), *(threads()[path] for path in during))
"""


def test_it_fits_with_one_thread_also_of_the_library_that_scipy_brings_with_it():
    found = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    libraries, *threads = map(int, found.stdout.split())
    numpys = threads[libraries]
    assert libraries >= 2 and threads[:libraries] == [1] * libraries, found.stderr
    assert numpys == 2, "the limit stayed after the fit"


@pytest.mark.parametrize("label", [0.0, 1.0, np.nan])
def test_a_class_with_one_kind_of_label_keeps_its_column(label):
    data, (kernel, bias) = split(), received()
    data.labels[:, 1] = label
    fitted, moved = refit_columns(data, kernel, bias, 0.01)
    np.testing.assert_array_equal(fitted[:, 1], kernel[:, 1])
    assert moved[1] == bias[1] and not np.allclose(fitted[:, 0], kernel[:, 0])


class TestChoice:
    def test_the_penalty_is_the_one_with_the_smallest_validation_loss(self):
        train, validation, (kernel, bias) = split(images=30), split(1), received()
        found = best_refit(train, validation, kernel, bias)
        fits = {of: refit_columns(train, kernel, bias, of) for of in column_refit.PENALTIES}
        losses = {of: objective(validation, *fit, kernel, penalty=0) for of, fit in fits.items()}
        assert found.penalty == min(losses, key=losses.get)
        strongest, *_, weakest = column_refit.PENALTIES
        assert found.penalty not in (strongest, weakest)  # or the choice is no choice

    def test_where_none_helps_the_columns_stay_as_they_were(self):
        train = split(images=30)
        wrong = FeatureSplit(train.features, 1 - train.labels)
        slopes = np.repeat((SLOPES / (1.0, 10.0, 0.1, 3.0))[:, None], 2, axis=1)
        validation, good = split(1), slopes.astype(np.float32)
        found = best_refit(wrong, validation, good, -2 * good.sum(axis=0))
        assert found.penalty is None and found.kernel is good

    def test_a_fit_that_is_not_finite_is_not_chosen(self):
        train, (kernel, bias) = split(), received()
        train.features[7, 1] = np.inf  # as of an image that overflows in float16
        with np.errstate(invalid="ignore"):
            assert best_refit(train, split(1), kernel, bias).kernel is kernel

    def test_without_a_labelled_validation_image_nothing_is_changed(self):
        train, (kernel, bias) = split(), received()
        empty = FeatureSplit(train.features, np.full_like(train.labels, np.nan))
        assert best_refit(train, empty, kernel, bias).penalty is None
