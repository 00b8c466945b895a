"""Whether an interval bears out a claim."""

from __future__ import annotations

from cxr_study.evaluation.seed_intervals import Interval

REPRODUCED, NOT_REPRODUCED, NOT_DECIDED = "reproduced", "not reproduced", "not decided"


def verdict(difference: Interval | None) -> str:
    """What the interval of a difference says of the claim that it is positive."""
    if difference is None or difference.low is None or difference.high is None:
        return NOT_DECIDED
    if difference.low > 0:
        return REPRODUCED
    return NOT_REPRODUCED if difference.high < 0 else NOT_DECIDED
