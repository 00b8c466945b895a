"""Whether surgical aggregation differs from the other rows of a study, by paired tests.

A data frame with one line for each kind of pairing, test set, group of classes and other row:

    pairing                 what the pairs are: "scenarios", "runs" or "classes"
    scenario                 whose classes are paired; "" where scenarios are
    test, group             test set, and classes of `study_results.GROUPS`
    method, strategy        of the other row
    model                   of it, as tables have it: see `as_tables`
    pairs, left_out         how many were compared, and how many not, for one side is not defined
    by                      the test that decided; "" where none could
    difference, low, high   mean of surgical minus other over the pairs, with its 95 % t interval
    statistic, p            of the test that decided; see `paired_tests.compare_pairs`
    normality, t, t_p       p of Shapiro-Wilk, and the paired t-test whichever decided
    tests, holm, mark       size of the line's family, p adjusted for it, and its mark

Both runs of a pair are finished. A model that lacks a class of the group defines nothing; of
several models of sites, the mean over those that define it is compared. Means over seeds are of
the seeds that both sides define. Without a pair there is no line.

"scenarios" are the papers' ablations: a pair is a scenario, its value the mean AUROC, averaged over
seeds. "runs" are the same without averaging; runs with one seed have splits in common, so that its
p is smaller than it should be. "classes" is the papers' study of real sites: within a scenario a
pair is a class, its value the AUROC, averaged over seeds. Scenarios and classes are taken for
independent, as in the papers.

A family is what has pairing, test set and group in common: all other rows and, of "classes", all
scenarios. Within it p is adjusted by Holm's procedure.

Source:
    Kulkarni et al., ML4H 2024, section 2.6; families and seeds are this project's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from cxr_studies.analysis.paired_tests import compare_pairs, holm, mark
from cxr_studies.analysis.study_results import (
    RUN,
    StudyResults,
    as_tables,
    by_group,
    reference,
)

SCENARIOS, RUNS, CLASSES = "scenarios", "runs", "classes"
"""Kinds of pairing."""

ADJUSTED = ["tests", "holm", "mark"]
"""Columns of `adjusted`."""

FAMILY = ["pairing", "test", "group"]
"""Columns that lines of a family have in common."""

_LINE = ["test", "group", "method", "strategy", "model"]

_FIGURES = ["difference", "low", "high", "statistic", "p", "normality", "t", "t_p"]

_COLUMNS = ["pairing", "scenario", *_LINE, "pairs", "left_out", "by", *_FIGURES, *ADJUSTED]


def significance(results: StudyResults) -> pd.DataFrame:
    """Test surgical aggregation against every other row; no line without anything to compare."""
    by_class = by_group(results.scores)
    means = _opposed(results.means, results, [])
    lines = [
        *_lines(SCENARIOS, means, _LINE, ["scenario"]),
        *_lines(RUNS, means, _LINE, ["scenario", "seed"]),
        *_lines(CLASSES, _opposed(by_class, results, ["class"]), ["scenario", *_LINE], ["class"]),
    ]
    frame = pd.DataFrame(lines, columns=_COLUMNS).astype(dict.fromkeys(_FIGURES, float))
    return adjusted(frame, FAMILY)


def _opposed(lines: pd.DataFrame, results: StudyResults, unit: list[str]) -> pd.DataFrame:
    """Lines of other rows beside the reference's: AUROC `other` and `surgical`, both or neither."""
    row = reference(results.runs)
    if row is None:
        return pd.DataFrame()
    models = as_tables(lines).groupby([*RUN, "group", *unit], sort=False)
    lines = models[["auroc"]].mean().reset_index()
    ours = (lines["method"] == row.method) & (lines["strategy"] == row.strategy)
    same = ["scenario", "seed", "test", "group", *unit]
    opposed = lines[~ours].merge(lines.loc[ours, [*same, "auroc"]], on=same, suffixes=("", "_ours"))
    opposed = opposed.rename(columns={"auroc": "other", "auroc_ours": "surgical"})
    defined = opposed["other"].notna() & opposed["surgical"].notna()
    opposed.loc[~defined, ["other", "surgical"]] = np.nan
    return opposed


def _lines(
    pairing: str, opposed: pd.DataFrame, line: Sequence[str], pair: list[str]
) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    if opposed.empty:
        return lines
    for keys, rows in opposed.groupby(list(line), sort=False):
        pairs = rows.groupby(pair, sort=False)[["surgical", "other"]].mean()
        found = compare_pairs(pairs["surgical"].tolist(), pairs["other"].tolist())
        if found.difference is None:
            continue
        figures = {**asdict(found), **asdict(found.difference), "by": found.test or ""}
        figures |= {"difference": found.difference.mean, "pairing": pairing, "scenario": ""}
        lines.append({**figures, **dict(zip(line, keys, strict=True))})
    return lines


def adjusted(lines: pd.DataFrame, family: list[str]) -> pd.DataFrame:
    """Lines of tests (p is NaN where one could not decide) with their columns `ADJUSTED`."""

    def adjust(p_values: pd.Series) -> np.ndarray:
        return np.array(holm([_known(p) for p in p_values]), float)

    families = lines.groupby(family)["p"]
    lines = lines.assign(tests=families.transform("count"), holm=families.transform(adjust))
    return lines.assign(mark=[mark(_known(p)) for p in lines["holm"]])


def _known(p: float) -> float | None:
    return None if np.isnan(p) else p
