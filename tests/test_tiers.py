"""The tiers of tests are as support/tiers.py says."""

import os
import re
from pathlib import Path

import pytest

import tiers

TESTS = Path(__file__).parent


def test_what_is_named_exists():
    named = [*tiers.ABOVE_QUICK, *tiers.HEAVIEST]
    assert [name for name in named if not (TESTS / name).exists()] == []


def test_every_tier_is_run_by_the_continuous_integration():
    workflow = (TESTS.parent / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"tier: \[(.*)\]", workflow)
    asked = [*re.findall(r"--tier=(\w+)", workflow), *matrix.split(", ")]
    assert sorted(asked) == sorted(tiers.TIERS)


@pytest.mark.parametrize(("path", "expected"), [
    ("poc/test_faults.py", "poc"), ("surgical_aggregation/site/training/test_loss.py", "slow"),
    ("surgical_aggregation/wire/test_variables.py", "quick"), ("test_tiers.py", "quick"),
])  # fmt: skip
def test_a_files_tier_is_its_own_or_its_folders(path, expected):
    assert tiers.tier(Path(path)) == expected


def test_every_test_has_its_tier_and_its_group(request):
    assert request.node.get_closest_marker("quick")
    if "PYTEST_XDIST_WORKER" in os.environ:  # else files would be shared out test by test
        assert request.node.nodeid.endswith("@test_tiers.py")
