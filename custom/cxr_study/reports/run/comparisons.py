"""How far a run's models are ahead of others, in sentences for page, card and terminal.

Differences are those of `summary.json`: of mean AUROC, paired by patient, with 95 % intervals.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import product

from cxr_study.common.wording import counted, join_names, shortened
from cxr_study.evaluation.summary_json import ClassAuroc, Compared, Difference, Group, Summary
from cxr_study.reports.page import numbers


def comparisons(summary: Summary) -> list[str]:
    """State for each hospital whether the model is better than the one that it trains alone.

    Args:
        summary: Of the run, with the differences that were measured.

    Returns:
        A sentence for each hospital, or `NOT_MEASURED` where none trained alone; then one for each
        other model and kind of class with a difference, over all sites that have one.
    """
    alone = [each for each in summary.differences if each.against == "local"]
    lines = [_against_own_model(each) for each in alone]
    compared = {each.site for each in alone}
    if any(row.model == "local" for row in summary.test):
        sites = dict.fromkeys(row.site for row in summary.test)
        lines += [_not_compared(summary, site) for site in sites if site not in compared]
    lines = lines or [NOT_MEASURED]
    for against, group in product(_OTHERS, _ON):
        by_site = [
            f"{each.site} {_in_words(each)}{_left_out(each)}"
            for each in summary.differences
            if (each.against, each.classes) == (against, group)
        ]
        other, on = _OTHERS[against], f"on the classes that a site {_ON[group]}"
        lines += [f"Against {other}, {on}: {join_names(by_site)}."] * bool(by_site)
    return lines


def why_left_out(rows: Iterable[ClassAuroc]) -> str:
    """List the reasons why AUROCs are in no mean, each with its classes."""
    classes: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.left_out:
            classes.setdefault(row.left_out, {})[row.class_name] = None
    reasons = [f"{why} ({shortened([*names])})" for why, names in classes.items()]
    return "; ".join(reasons) or "no AUROC is defined"


NOT_MEASURED = (
    "Whether a hospital is better off than by itself was not measured: surgagg run --local-models "
    "trains each site alone as well, surgagg baseline individual at any time."
)
"""In place of the hospitals' sentences, where no site trained alone."""


def _not_compared(summary: Summary, site: str) -> str:
    """State why a hospital's model is not compared with the one that it trains alone."""
    models = ("global", "local")
    rows = [r for r in summary.test if r.site == site and r.labelled and r.model in models]
    trained = any(row.model == "local" for row in rows)
    why = why_left_out(rows) if trained else "there is no such model"
    return f"{site}: not compared with the model that it trains alone: {why}."


def _against_own_model(each: Difference) -> str:
    """State a hospital's difference to its own model.

    Returns:
        A sentence; and what the hospital can do where the whole interval is below zero.
    """
    line = f"{each.site}, on the classes that it labels itself: {_in_words(each)}{_left_out(each)}"
    line += ", against the model that it trains alone."
    if each.high is None or each.high >= 0:
        return line
    return f"{line} It may keep its own model for these; the report compares them class by class."


def _in_words(each: Difference) -> str:
    """Write a difference with its interval, which decides on the words.

    Returns:
        `better by` or `worse by` its size where the interval excludes zero, `no difference that
        shows` where it does not, and the signed difference alone where there is no interval.
    """
    low, high = each.low, each.high
    if low is None or high is None:
        return f"{numbers.figure(each.auroc, 3, signed=True)}, without an interval"
    if low <= 0 <= high:
        return f"no difference that shows, {numbers.interval(each.auroc, low, high, signed=True)}"
    near, far = sorted((abs(low), abs(high)))
    decimals = max(3, math.ceil(-math.log10(near)))  # no end of the interval is shown as 0
    by = numbers.interval(abs(each.auroc), near, far, decimals)
    return f"{'better' if low > 0 else 'worse'} by {by}"


def _left_out(each: Difference) -> str:
    """How many classes are left out of a difference for their few patients; "": none."""
    few = counted(each.few, "class", "classes")
    return f" without {few} of too few patients" if each.few else ""


_ON: Mapping[Group, str] = {"labelled": "labels itself", "unlabelled": "does not label"}
"""Group of classes -> what the site does with them."""

_OTHERS: Mapping[Compared, str] = {
    "published": "the method as published",
    "before": "the model that this run started from",
}
"""What the model is compared with, apart from the hospitals' own models."""
