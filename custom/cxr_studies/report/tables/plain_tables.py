"""The page's plain tables: data frames of texts, with words as index and numbers as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.plan.row import Row
from cxr_studies.report.tables.layouts import TESTS
from cxr_study.reports.page.numbers import figure, interval

_MODEL = ["scenario", "method", "strategy", "model", "test"]


def tested(found: pd.DataFrame, pairing: str) -> pd.DataFrame:
    """Surgical aggregation against the other rows over all classes.

    Args:
        found: See `significance`.
        pairing: "scenarios" or "classes".
    """
    chosen = found[(found["pairing"] == pairing) & (found["group"] == "all")]
    named = chosen.rename(columns={"low": "difference_low", "high": "difference_high"})
    numbers = {
        "pairs": chosen["pairs"].map(str),
        "difference": _intervals(named, "difference", signed=True),
        "test": chosen["by"],
        "p": chosen["p"].map(_p),
        "Holm": chosen["holm"].map(_p),
        "": chosen["mark"],
    }
    named["scenario"] = named["scenario"].replace("", "all")
    return _frame(named, numbers, against="against")


def by_class_kind(results: StudyResults) -> pd.DataFrame:
    """Mean AUROC over shared and over unique classes, with their difference over seeds."""
    seeds = results.seeds.assign(text=_intervals(results.seeds, "auroc"))
    shared, unique = (seeds[seeds["group"] == group] for group in ("shared", "unique"))
    both = shared.merge(unique, on=_MODEL, suffixes=("", "_unique"))
    gap = (both["auroc"] - both["auroc_unique"]).map(lambda value: figure(value, signed=True))
    return _frame(both, {"shared": both["text"], "unique": both["text_unique"], "gap": gap})


def measured(results: StudyResults) -> pd.DataFrame:
    """Every metric over all classes."""
    chosen = results.seeds[results.seeds["group"] == "all"]
    metrics = ("auroc", "auprc", "bce", "ece")
    return _frame(chosen, {name.upper(): _intervals(chosen, name) for name in metrics})


def in_subgroups(found: pd.DataFrame) -> pd.DataFrame:
    """Mean AUROC by sex, age and view.

    Args:
        found: See `subgroups.over_seeds`; not empty.
    """
    numbers = {
        "images": found["images"].map("{:.0f}".format),
        "patients": found["patients"].map("{:.0f}".format),
        "same classes": _intervals(found, "compared_auroc"),
        "all classes": _intervals(found, "auroc"),
        "classes with few": found["few"].map("{:.0f}".format),
    }
    return _frame(found, numbers, {"by": found["kind"], "subgroup": found["subgroup"]})


def by_patient(found: pd.DataFrame) -> pd.DataFrame:
    """Surgical aggregation minus other rows over all classes, with intervals by patient.

    Args:
        found: `PatientIntervals.differences`.
    """
    chosen = found[found["group"] == "all"]
    metrics = {name.upper(): _intervals(chosen, name, signed=True) for name in ("auroc", "auprc")}
    return _frame(chosen, {"seed": chosen["seed"].map(str), **metrics}, against="against")


def _frame(
    found: pd.DataFrame,
    numbers: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
    against: str = "method",
) -> pd.DataFrame:
    """A table of numbers as texts.

    Args:
        found: Lines with the columns of `study_results.RUN` but the seed.
        numbers: Heading -> texts, of the columns.
        more: Heading -> texts, of further columns of the index.
        against: Heading of the method.
    """
    pairs = zip(found["method"], found["strategy"], strict=True)
    rows = [Row(method, strategy) for method, strategy in pairs]
    words: dict[str, Any] = {
        "scenario": found["scenario"],
        against: [row.title for row in rows],
        "strategy": [row.strategy_title for row in rows],
        "model": found["model"],
        "on": found["test"].map(TESTS),
        **(more or {}),
    }
    columns = {name: list(values) for name, values in {**words, **numbers}.items()}
    return pd.DataFrame(columns).set_index(list(words))


def _intervals(found: pd.DataFrame, value: str, *, signed: bool = False) -> list[str]:
    """Texts of a column with its intervals."""
    ends = zip(found[value], found[f"{value}_low"], found[f"{value}_high"], strict=True)
    return [interval(*each, signed=signed) for each in ends]


def _p(value: float) -> str:
    return "<0.001" if value is not None and value < 0.001 else figure(value)
