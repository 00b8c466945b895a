"""What a study's page says in plain tables: tests, subgroups, calibration, shared and unique."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.cells import UNDEFINED
from cxr_study.reports.study.tables.tables import TESTS
from cxr_study.studies.analysis.study_results import StudyResults


@dataclass(frozen=True)
class Lines:
    """A plain table.

    Attributes:
        headings: Of the columns; those after the first `texts` are of numbers.
        rows: Texts.
        texts: How many columns hold words.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int


def tested(found: pd.DataFrame, pairing: str) -> Lines:
    """Surgical aggregation against the other rows; see `significance`.

    Args:
        found: As `significance` gives it.
        pairing: Which kind of pairs; over all classes of a test set.
    """
    chosen = found[(found["pairing"] == pairing) & (found["group"] == "all")]
    headings = (
        "setting", "against", "strategy", "model", "on",
        "pairs", "difference", "test", "p", "Holm", "",
    )  # fmt: skip
    return Lines(
        headings,
        tuple(
            (
                line["setting"] or "all",
                *_named(line),
                line["model"],
                TESTS[line["test"]],
                str(line["pairs"]),
                with_ends(line["difference"], line["low"], line["high"], signed=True),
                line["by"],
                _p(line["p"]),
                _p(line["holm"]),
                line["mark"],
            )
            for _, line in chosen.iterrows()
        ),
        5,
    )


def by_class_kind(results: StudyResults) -> Lines:
    """Mean AUROC over shared and over unique classes, with their difference over seeds."""
    keys = ["setting", "method", "strategy", "model", "test"]
    wide = results.seeds[results.seeds["group"].isin(["shared", "unique"])]
    rows = []
    for values, lines in wide.groupby(keys, sort=False):
        by_group = {line["group"]: line for _, line in lines.iterrows()}
        if len(by_group) == 2:
            figures = [_mean(by_group[group], "auroc") for group in ("shared", "unique")]
            gap = by_group["shared"]["auroc"] - by_group["unique"]["auroc"]
            line = dict(zip(keys, values, strict=True))
            rows.append((*_tested_model(line), *figures, _gap(gap)))
    headings = ("setting", "method", "strategy", "model", "on", "shared", "unique", "gap")
    return Lines(headings, tuple(rows), 5)


def measured(results: StudyResults) -> Lines:
    """Every metric over all classes."""
    chosen = results.seeds[results.seeds["group"] == "all"]
    metrics = ("auroc", "auprc", "bce", "ece")
    return Lines(
        ("setting", "method", "strategy", "model", "on", *map(str.upper, metrics)),
        tuple(
            (
                *_tested_model(line),
                *(_mean(line, metric) for metric in metrics),
            )
            for _, line in chosen.iterrows()
        ),
        5,
    )


def in_subgroups(found: pd.DataFrame) -> Lines:
    """Mean AUROC by sex, age and view; see `subgroups`.

    Args:
        found: As `subgroups.over_seeds` gives it.
    """
    headings = (
        "setting", "method", "strategy", "model", "on", "by", "subgroup",
        "images", "patients", "same classes", "all classes", "classes with few",
    )  # fmt: skip
    return Lines(headings, tuple(_subgroup_rows(found)), 7)


def by_patient(found: pd.DataFrame) -> Lines:
    """How far surgical aggregation is ahead of the other rows, run by run; see `patient_intervals`.

    Args:
        found: Its differences; those over all classes are shown.
    """
    headings = ("setting", "against", "strategy", "model", "on", "seed", "AUROC", "AUPRC")
    rows = tuple(
        (
            *_tested_model(line),
            str(line["seed"]),
            *(
                with_ends(line[metric], line[f"{metric}_low"], line[f"{metric}_high"], signed=True)
                for metric in ("auroc", "auprc")
            ),
        )
        for _, line in found[found["group"] == "all"].iterrows()
    )
    return Lines(headings, rows, 5)


def with_ends(
    value: float | None, low: float | None, high: float | None, *, signed: bool = False
) -> str:
    """A figure with the ends of its interval, as far as they are defined (neither None nor NaN)."""
    form = "{:+.3f}" if signed else "{:.3f}"
    if value is None or np.isnan(value):
        return UNDEFINED
    told = form.format(value)
    if low is None or np.isnan(low):
        return told
    return f"{told} ({form.format(low)} to {form.format(high)})"


def _subgroup_rows(found: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    for _, line in found.iterrows():
        yield (
            *_tested_model(line),
            line["kind"],
            line["subgroup"],
            f"{line['images']:.0f}",
            f"{line['patients']:.0f}",
            _mean(line, "compared_auroc"),
            _mean(line, "auroc"),
            f"{line['few']:.0f}",
        )


def _tested_model(line: Mapping[str, Any] | pd.Series) -> tuple[str, ...]:
    return (line["setting"], *_named(line), line["model"], TESTS[line["test"]])


def _named(line: Mapping[str, Any] | pd.Series) -> tuple[str, str]:
    row = Row(line["method"], line["strategy"])
    return row.title, row.variant


def _mean(line: pd.Series, metric: str) -> str:
    return with_ends(line[metric], line[f"{metric}_low"], line[f"{metric}_high"])


def _gap(value: float) -> str:
    return UNDEFINED if np.isnan(value) else f"{value:+.3f}"


def _p(value: float) -> str:
    if value is None or np.isnan(value):
        return UNDEFINED
    return "<0.001" if value < 0.001 else f"{value:.3f}"
