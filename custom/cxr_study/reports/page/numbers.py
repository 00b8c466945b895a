"""How pages write numbers: figures with their intervals, and counts."""

import math

from cxr_study.evaluation.summary_json import ClassAuroc, MeanAuroc

UNDEFINED = "\N{EN DASH}"
"""Stands where a figure is not defined."""

WITHHELD = "withheld"
"""Stands where a count is not shared."""


Known = float | None  # None or NaN where it is not defined


def figure(value: Known, decimals: int = 3, *, signed: bool = False) -> str:
    """Write a figure: `0.812`, `+0.050`, or `UNDEFINED` for None and NaN."""
    if value is None or math.isnan(value):
        return UNDEFINED
    return f"{value:{'+' if signed else ''}.{decimals}f}"


def interval(
    value: Known, low: Known, high: Known, decimals: int = 3, *, signed: bool = False
) -> str:
    """Write a figure with its interval, `0.812 (0.750 to 0.850)`, as far as they are defined."""
    told = figure(value, decimals, signed=signed)
    if told == UNDEFINED or low is None or high is None or math.isnan(low):
        return told
    ends = (figure(end, decimals, signed=signed) for end in (low, high))
    return f"{told} ({' to '.join(ends)})"


def auroc(row: ClassAuroc | MeanAuroc | None, decimals: int = 2) -> str:
    """Write an AUROC with its interval, such as `0.81 (0.77-0.85)`, or `not defined`."""
    if row is None or row.auroc is None:
        return "not defined"
    return interval(row.auroc, row.low, row.high, decimals).replace(" to ", "\N{EN DASH}")


def count(value: int | None) -> str:
    """Write a count: `1,234`, or `WITHHELD` for None."""
    return WITHHELD if value is None else f"{value:,}"
