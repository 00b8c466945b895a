import numpy as np
import pytest

from cxr_phantom.drawing.canvas import axes, blur, curve, edge, smooth_noise, trace


def test_edges_are_linear_noise_has_unit_variance_curves_reach_their_ends_and_blur_keeps_sums():
    x, y = axes(4)
    np.testing.assert_allclose(x.ravel(), [-0.75, -0.25, 0.25, 0.75])
    assert (x.shape, y.shape) == ((1, 1, 4), (1, 4, 1))
    inside = np.array([-2.0, -0.5, 0.0, 0.5, 2.0])
    np.testing.assert_allclose(edge(inside, 2), [0, 0.25, 0.5, 0.75, 1])
    noise = smooth_noise(np.random.default_rng(0), 2000, 32, 4)
    np.testing.assert_allclose(noise.std(axis=0), 1, atol=0.1)
    assert np.abs(np.diff(noise, axis=1)).mean() < 0.3
    points = curve((np.zeros(2), np.zeros(2)), (1.0, 1.0), (np.ones(2), np.zeros(2)), samples=5)
    np.testing.assert_allclose(points[:, [0, 2, 4]], [[[0, 0], [0.75, 0.5], [1, 0]]] * 2)
    np.testing.assert_allclose(blur(np.full((1, 5, 5), 3.0)), 3)


def test_trace_marks_the_pixels_a_line_runs_through_on_the_picture():
    row = curve((np.array([-0.9]), np.array([0.125])), (0.9, 0.125), samples=32)
    across, down = trace(row, 8, width=0.01)[0], trace(row[..., ::-1], 8, width=0.01)[0]
    assert across[4, 1:-1].min() > 0.5
    assert across[[0, 1, 2, 3, 5, 6, 7]].max() == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(down, across.T, atol=1e-6)
    away = curve((np.array([1.5]), np.array([-1.0])), (1.5, 1.0), samples=32)
    assert trace(away, 8, width=0.1).max() == 0
