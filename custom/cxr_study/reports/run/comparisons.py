"""What a run's models are worth against others, in sentences."""

from collections.abc import Mapping
from itertools import product

from cxr_study.common.wording import counted, listed
from cxr_study.evaluation.summary_json import Compared, Difference, Group, Summary
from cxr_study.reports.page import numbers


def comparisons(summary: Summary) -> list[str]:
    """Whether the run paid, a sentence for each hospital, and how far the model is from others.

    It paid where the model is better than that which the hospital trains alone. Where none was
    trained, that is said.
    """
    alone = [each for each in summary.differences if each.against == "local"]
    lines = [_paid(each) for each in alone] or [NOT_MEASURED]
    for against, group in product(_OTHERS, _ON):
        told = [
            f"{each.site} {_than(each)}{_without(each)}"
            for each in summary.differences
            if (each.against, each.classes) == (against, group)
        ]
        other, on = _OTHERS[against], f"on the classes that a site {_ON[group]}"
        lines += [f"Against {other}, {on}: {listed(told)}."] * bool(told)
    return lines


NOT_MEASURED = (
    "Whether a hospital is better off than by itself was not measured: surgagg run --local-models "
    "trains each site alone as well, surgagg baseline individual at any time."
)


def _paid(each: Difference) -> str:
    """What a hospital's difference to its own model says, and what to do if it is behind."""
    line = f"{each.site}, on the classes that it labels itself: {_than(each)}{_without(each)}"
    line += ", against the model that it trains alone."
    if each.high is None or each.high >= 0:
        return line
    return f"{line} It may keep its own model for these; the report compares them class by class."


def _than(each: Difference) -> str:
    """A difference in words, with its interval."""
    low, high = each.low, each.high
    if low is None or high is None:
        return f"{numbers.figure(each.auroc, 3, signed=True)}, without an interval"
    if low <= 0 <= high:
        return f"no difference that shows, {numbers.interval(each.auroc, low, high, signed=True)}"
    near, far = sorted((abs(low), abs(high)))
    by = numbers.interval(abs(each.auroc), near, far)
    return f"{'better' if low > 0 else 'worse'} by {by}"


def _without(each: Difference) -> str:
    few = counted(each.few, "class", "classes")
    return f" without {few} of too few patients" if each.few else ""


_ON: Mapping[Group, str] = {"labelled": "labels itself", "unlabelled": "does not label"}

_OTHERS: Mapping[Compared, str] = {
    "published": "the method as published",
    "before": "the model that this run started from",
}
"""What the model is compared with beside the hospitals' own."""
