"""How much a site's body counts; what its columns count is in `test_aggregator`."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgical_aggregation.aggregation import conflict_averse
from surgical_aggregation.aggregation.averaging import mean
from surgical_aggregation.aggregation.result_checks import Contribution
from surgical_aggregation.aggregation.weighting import WeightingError, body_weights

COLUMN = (np.zeros(1, np.float32), np.zeros(1, np.float32))


def site(classes, samples=None, **body):
    variables = {name: np.float32(value) for name, value in body.items()}
    return Contribution(variables, dict.fromkeys(classes, COLUMN), samples)


def test_a_class_counts_once_however_many_sites_teach_it():
    sites = [site("abc"), site("cd"), site("c")]
    third = Fraction(1, 3)
    shares = [2 + third, 1 + third, third]
    assert sum(shares) == 4
    found = body_weights("classes", sites, {})
    np.testing.assert_allclose(found, [float(share * 3 / 4) for share in shares], rtol=1e-15)


@given(st.integers(1, 40), st.integers(1, 20))
def test_sites_with_the_same_classes_weigh_as_in_the_mean_bit_for_bit(sites, classes):
    alike = [site([f"c{i}" for i in range(classes)]) for _ in range(sites)]
    assert body_weights("classes", alike, {}) == body_weights("mean", alike, {}) == [1.0] * sites


def test_a_site_without_a_class_is_refused():
    with pytest.raises(WeightingError, match="needs columns of every site; one sent none"):
        body_weights("classes", [site("a"), site("")], {})


class TestConflictAverse:
    def of(self, *updates):
        start = {"w": np.float32([10, 10])}
        sites = [site("a", w=start["w"] + update, fixed=[9]) for update in updates]
        return body_weights("conflict_averse", sites, start)

    def step(self, *updates):
        return mean([np.float64(update) for update in updates], self.of(*updates))

    def test_one_site_and_sites_that_do_not_move_weigh_the_same(self):
        assert self.of([1, 2]) == [1.0]
        assert self.of([0, 0], [0, 0], [0, 0]) == [1.0] * 3

    @pytest.mark.parametrize("block", [1, 3, 5, 2**20])
    def test_a_wide_variable_is_looked_at_in_blocks(self, monkeypatch, block):
        monkeypatch.setattr(conflict_averse, "BLOCK", block)
        rng = np.random.default_rng(0)
        start = {"w": rng.random((2, 5)), "v": rng.random(4)}
        bodies = [{name: rng.random(v.shape) for name, v in start.items()} for _ in range(3)]
        flat = [np.concatenate([(b[n] - v).ravel() for n, v in start.items()]) for b in bodies]
        gram = [[one @ other for other in flat] for one in flat]
        np.testing.assert_allclose(conflict_averse.products(bodies, start), gram, rtol=1e-12)

    def test_the_weights_sum_to_the_number_of_sites_and_leave_nobody_out(self):
        weights = self.of([3, 1], [-1, 2], [0.5, -4])
        assert sum(weights) == pytest.approx(3) and min(weights) > 0

    def test_of_all_steps_within_the_radius_it_does_most_for_the_site_it_does_least_for(self):
        """Against a search over all directions around the mean."""
        updates = np.float64([[3, 1], [-1, 2]])
        average = updates.mean(axis=0)
        radius = 0.5 * np.linalg.norm(average)
        angles = np.linspace(0, 2 * np.pi, 20_000)
        around = average + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        best = around[(around @ updates.T).min(axis=1).argmax()]
        step = self.step(*updates)
        np.testing.assert_allclose(
            step / np.linalg.norm(step), best / np.linalg.norm(best), atol=2e-3
        )
        assert (updates @ step).min() > (updates @ average).min() * np.linalg.norm(
            step
        ) / np.linalg.norm(average)

    def test_a_site_that_all_others_go_against_gets_more_than_its_share(self):
        weights = self.of([1, 0], [1, 0.1], [-1, 0.2])
        assert weights.index(max(weights)) == 2

    @pytest.mark.parametrize("share", [0.0, 0.01, 0.1])
    def test_a_site_that_hardly_moves_does_not_hold_the_others(self, share):
        updates = [[3.0, 1.0]] * 9 + [[3.0 * share, share]]
        step, average = self.step(*updates), np.mean(updates, axis=0)
        assert 0.5 <= np.linalg.norm(step) / np.linalg.norm(average) < 1

    def test_the_scale_of_all_updates_makes_no_difference(self):
        one = self.of([3, 1], [-1, 2])
        np.testing.assert_allclose(self.of([3e-3, 1e-3], [-1e-3, 2e-3]), one, rtol=1e-2)


@pytest.mark.parametrize("weighting", ["mean", "classes", "conflict_averse"])
def test_equal_updates_stay_as_they_are(weighting):
    start = {"w": np.float32([1, 1])}
    sites = [site("ab", w=[3, 4]), site("ab", w=[3, 4])]
    weights = body_weights(weighting, sites, start)
    np.testing.assert_allclose(mean([s.body["w"] for s in sites], weights), [3, 4], rtol=1e-6)
