import numpy as np
import pytest

from cxr_studies.papers.claim import (
    AHEAD,
    GROWS_WITH_SITES,
    GROWS_WITH_UNSHARED,
    KINDS,
    MORE_EVEN,
    NEARER,
    SAME,
    Comparison,
)
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario

OURS, THEIRS, BASELINE = (Row(name, "fedbn+") for name in ("surgical", "vanilla", "complete"))
SITES = [Scenario(name=str(sites), cut="nih", sites=sites) for sites in (2, 4, 10)]
BOTH = Scenario(name="2", sites=["nih", "chexpert"])
SHARED = [Scenario(name=str(shared), cut="nih", sites=4, shared=shared) for shared in (0, 4, 14)]


def number(kind, values, scenarios, group="all", **other):
    """What a kind of claim makes of {row: AUROCs, one per scenario}, or {(row, group): ...}."""
    names = [scenario.name for scenario in scenarios]

    def auroc(row, scenario, of):
        found = values.get((row, of), values.get(row))
        return found[names.index(scenario.name)] if (row, of) in values or of == group else -9.0

    which = Comparison(OURS, THEIRS, "nih", kind, group, **other)
    return KINDS[kind](auroc, which, scenarios)


@pytest.mark.parametrize("kind", [AHEAD, SAME])
def test_ahead_is_the_mean_lead_over_the_scenarios(kind):
    values = {OURS: [0.8, 0.7, 0.7], THEIRS: [0.75, 0.7, 0.6]}
    assert number(kind, values, SITES) == pytest.approx(0.05)
    assert number(kind, values, SITES, group="unique") == pytest.approx(0.05)
    values = {OURS: [0.8], THEIRS: [0.82]}
    assert number(kind, values, SITES[:1], margin=0.017) == pytest.approx(-0.02)


def test_nearer_is_by_the_distance_to_the_baseline_above_or_below_it():
    values = {BASELINE: [0.8, 0.8], OURS: [0.83, 0.78], THEIRS: [0.79, 0.7]}
    assert number(NEARER, values, SITES[:2]) == pytest.approx((0.01 + 0.1 - 0.03 - 0.02) / 2)
    assert Comparison(OURS, THEIRS, "nih", NEARER).rows == (OURS, THEIRS, BASELINE)
    assert Comparison(OURS, THEIRS, "nih").rows == (OURS, THEIRS)
    which = Comparison(Row("surgical", "fedavg"), THEIRS, "nih", NEARER)
    assert which.baseline == Row("complete", "fedavg")


def test_more_even_is_the_smaller_loss_from_shared_to_unique_classes():
    values = {
        (OURS, "shared"): [0.84], (OURS, "unique"): [0.78],
        (THEIRS, "shared"): [0.82], (THEIRS, "unique"): [0.60],
    }  # fmt: skip
    assert number(MORE_EVEN, values, SITES[:1]) == pytest.approx(0.22 - 0.06)


@pytest.mark.parametrize(("kind", "scenarios", "leads", "wanted"), [
    (GROWS_WITH_SITES, SITES, [0.05, 0.09, 0.21], 0.02 * 8),
    # About their means sites are -10/3, -4/3, 14/3, and leads -0.03, 0, 0.03: least squares.
    (GROWS_WITH_SITES, SITES, [0.1, 0.13, 0.16], 8 * 0.03 * 24 / 3 / ((100 + 16 + 196) / 9)),
    (GROWS_WITH_SITES, [BOTH, *SITES[1:]], [0.05, 0.09, 0.21], 0.02 * 8),
    # Over shared classes it is the rise as they become fewer.
    (GROWS_WITH_UNSHARED, SHARED, [0.12, 0.12 - 0.12 * 4 / 14, 0], 0.12),
    (GROWS_WITH_SITES, SITES[:1], [0.1], np.nan),
])  # fmt: skip
def test_growth_is_the_rise_of_the_lead_along_a_line(kind, scenarios, leads, wanted):
    values = {OURS: [0.6 + lead for lead in leads], THEIRS: [0.6] * len(leads)}
    assert number(kind, values, scenarios) == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize("kind", sorted({*KINDS} - {NEARER, MORE_EVEN}))
def test_a_scenario_that_is_not_defined_leaves_no_number(kind):
    values = {OURS: [0.8, np.nan, 0.7], THEIRS: [0.7] * 3}
    assert np.isnan(number(kind, values, SITES))
