"""Whether surgical aggregation differs from the other rows of a study: paired tests, and DeLong's.

`significance` has one line for each kind of pairing, test set, group of classes and other row:

    pairing                 what the pairs are: "scenarios", "runs" or "classes"
    scenario                 whose classes are paired; "" where scenarios are
    test, group             test set, and classes of `study_results.GROUPS`
    method, strategy        of the other row
    model                   of it, as tables have it: see `as_tables`
    pairs, left_out         how many were compared, and how many not, for one side is not defined
    by                      the test that decided; "" where none could
    difference, low, high   mean of surgical minus other over the pairs, with its 95 % t interval
    statistic, p            of the test that decided; see `compare_pairs`
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

`class_tests` has one line for each scenario, other row, seed, test set and class of the test set:

    scenario, method, strategy, seed    of the other row's run
    test, class
    images, patients                   with a label of the class
    positives                          among the images
    surgical, other                    AUROCs
    difference, low, high              surgical minus other, with its 95 % interval
    z, p                               see `DelongTest`
    tests, holm, mark                  size of the line's family, p adjusted for it, and its mark

Models are as `counts_on` has them. NaN is not defined: a model lacks the class, or the
test set has fewer than two positives or two negatives.

A family is what has scenario, row, seed and test set in common: the classes. Seeds are not pooled:
their models are tested on images that are partly or all the same, so their p values are not those
of independent tests, and a median of them is no p value.

Source:
    Kulkarni et al., ML4H 2024, section 2.6; families and seeds are this project's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cxr_studies.analysis.intervals_and_tests import compare_pairs, delong_test, holm, mark
from cxr_studies.analysis.study_results import (
    RUN,
    StudyResults,
    as_tables,
    by_group,
    counted,
    reference,
    shared_out,
)
from cxr_studies.plan.run_folder import Result
from cxr_study.common.progress import Report
from cxr_study.data.labels.label_table import classes as class_columns

SCENARIOS, RUNS, CLASSES = "scenarios", "runs", "classes"
"""Kinds of pairing."""

DELONG_WARNING = (
    "DeLong's test takes images for independent. Where patients have several, they are not: its p "
    "values are too small and its intervals too narrow. Those by patient account for it."
)
"""To be said wherever a line of `class_tests` has more images than patients."""

FAMILY = ["pairing", "test", "group"]
CLASS_FAMILY = ["scenario", "method", "strategy", "seed", "test"]
"""Columns that lines of a family have in common."""

_ADJUSTED = ["tests", "holm", "mark"]

_LINE = ["test", "group", "method", "strategy", "model"]
_FIGURES = ["difference", "low", "high", "statistic", "p", "normality", "t", "t_p"]
_COLUMNS = ["pairing", "scenario", *_LINE, "pairs", "left_out", "by", *_FIGURES, *_ADJUSTED]

_OF_CLASS = {"surgical": "first", "other": "second"} | {
    figure: figure for figure in ("difference", "low", "high", "z", "p")
}  # column -> of a `DelongTest`
_CLASS_COLUMNS = [
    *CLASS_FAMILY, "class", "images", "patients", "positives", *_OF_CLASS, *_ADJUSTED,
]  # fmt: skip


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


def class_tests(
    results: StudyResults, *, processes: int = 1, report: Report = lambda done, total: None
) -> pd.DataFrame:
    """Test surgical aggregation against every other row, class by class; see above."""
    pairs, kept = list(results.pairs()), results.results
    jobs = [(results.folder, (a.key, kept[a.key]), (b.key, kept[b.key])) for a, b in pairs]
    found = shared_out(_of_classes, jobs, processes=processes, report=report)
    lines = [
        {**run.facts, **line}
        for (_, run), several in zip(pairs, found, strict=True)
        for line in several
    ]
    frame = pd.DataFrame(lines, columns=_CLASS_COLUMNS).astype(dict.fromkeys(_OF_CLASS, float))
    return adjusted(frame, CLASS_FAMILY)


def _of_classes(
    folder: Path, surgical: tuple[str, Result], other: tuple[str, Result]
) -> list[dict[str, Any]]:
    """Two finished runs on the test sets that they have in common, class by class."""
    lines = []
    ours, theirs = counted(folder, *surgical), counted(folder, *other)
    for test, (_, _, table, scores) in ours.items():
        if test not in theirs or surgical[1].tests[test] != other[1].tests[test]:
            continue
        for name in class_columns(table):
            labels = table[name].to_numpy(float)
            known, lacking = ~np.isnan(labels), pd.Series(np.nan, table.index)
            both = (each.get(name, lacking).to_numpy() for each in (scores, theirs[test].scores))
            found = delong_test(labels, *both)
            figures = {column: getattr(found, of, None) for column, of in _OF_CLASS.items()}
            lines.append(
                {
                    "test": test,
                    "class": name,
                    "images": int(known.sum()),
                    "patients": int(table.loc[known, "patient"].nunique()),
                    "positives": int((labels == 1).sum()),
                    **figures,
                }
            )
    return lines


def adjusted(lines: pd.DataFrame, family: list[str]) -> pd.DataFrame:
    """Lines of tests (p is NaN where one could not decide) with tests, holm and mark."""

    def adjust(p_values: pd.Series) -> np.ndarray:
        return np.array(holm([_known(p) for p in p_values]), float)

    families = lines.groupby(family)["p"]
    lines = lines.assign(tests=families.transform("count"), holm=families.transform(adjust))
    return lines.assign(mark=[mark(_known(p)) for p in lines["holm"]])


def _known(p: float) -> float | None:
    return None if np.isnan(p) else p
