import numpy as np

from cxr_audit.census.pixels import BINS, PER, measure


def test_grey_values_are_the_mean_over_the_rows_asked_for():
    pixels = np.stack([np.zeros((16, 16), np.uint8), np.full((16, 16), 255, np.uint8)])
    histogram = measure(pixels, np.array([0, 1]))
    assert histogram.tolist() == [PER / 2] + [0] * (BINS - 2) + [PER / 2]
    assert measure(pixels, np.array([1]))[-1] == PER
    calls = []
    measure(pixels, np.zeros(1030, int), lambda *so_far: calls.append(so_far))
    assert calls == [(1024, 1030), (1030, 1030)]
