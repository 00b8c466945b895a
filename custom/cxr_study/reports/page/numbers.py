"""How pages, cards and tables write numbers: values with their intervals, and counts."""

import math

from cxr_study.evaluation.summary_json import ClassAuroc, MeanAuroc

UNDEFINED = "\N{EN DASH}"
"""In place of a value that is not defined or not known."""

WITHHELD = "withheld"
"""In place of a count that a site does not share."""


Known = float | None
"""A value; None or NaN: it is not defined."""


def figure(value: Known, decimals: int = 3, *, signed: bool = False) -> str:
    """Write a value: `0.812`, `+0.050`, or `UNDEFINED`.

    Args:
        value: None or NaN where it is not defined.
        decimals: Digits after the point.
        signed: Whether a positive value has a plus sign, as differences have.
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    # Plus 0.0, for what is rounded to zero has no sign.
    return f"{round(float(value), decimals) + 0.0:{'+' if signed else ''}.{decimals}f}"


def interval(
    value: Known, low: Known, high: Known, decimals: int = 3, *, signed: bool = False
) -> str:
    """Write a value with its interval: `0.812 (0.750 to 0.850)`.

    Args:
        value: None or NaN where it is not defined.
        low: Lower end of its interval, None or NaN where there is none.
        high: Upper end, likewise.
        decimals: Digits after the point of all three.
        signed: Whether positive ones have a plus sign.

    Returns:
        The value alone where there is no interval; `UNDEFINED` where there is no value.
    """
    text = figure(value, decimals, signed=signed)
    if text == UNDEFINED or low is None or high is None or math.isnan(low):
        return text
    ends = (figure(end, decimals, signed=signed) for end in (low, high))
    return f"{text} ({' to '.join(ends)})"


def auroc(row: ClassAuroc | MeanAuroc | None, decimals: int = 2) -> str:
    """Write an AUROC with its 95 % interval, such as `0.81 (0.77–0.85)`, or `not defined`.

    Args:
        row: Of a class or a mean; None: the summary has none.
        decimals: Digits after the point.
    """  # noqa: RUF002
    if row is None or row.auroc is None:
        return "not defined"
    return interval(row.auroc, row.low, row.high, decimals).replace(" to ", "\N{EN DASH}")


def count(value: int | None) -> str:
    """Write a count: `1,234`, or `WITHHELD` for None, a count that a site does not share."""
    return WITHHELD if value is None else f"{value:,}"
