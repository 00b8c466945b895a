"""Whether surgical aggregation differs from the other rows of a study: paired tests, and DeLong's.

`significance` has one line for each kind of pairing, test set, group of classes and other row:

    pairing                 what the pairs are: "scenarios", "runs" or "classes"
    scenario                 whose classes are paired; "" where scenarios are
    test, group             test set, and classes of `study_results.GROUPS`
    method, strategy        of the other row
    model                   of it, as tables name it: see `with_table_models`
    pairs, left_out         number of pairs compared, and of pairs with a side that is not defined
    by                      the test that decided; "" where none could
    difference, low, high   mean of surgical minus other over the pairs, with its 95 % t interval
    statistic, p            of the test that decided; see `compare_pairs`
    normality, t, t_p       p of Shapiro-Wilk, and the paired t-test whichever decided
    tests, holm, mark       size of the line's family, p adjusted for it, and its mark

Both runs of a pair are finished. A model that lacks a class of the group defines nothing; of
several models of sites, the mean over those that define it is compared. Surgical aggregation's own
server's model, which no hospital would use, is not. Means over seeds are of the seeds that both
sides define. Without a pair there is no line.

"scenarios" are the papers' ablations: a pair is a scenario, its value the mean AUROC, averaged over
seeds. "runs" are the same without averaging; runs with one seed have splits in common, so the p
value is smaller than it should be. "classes" is the papers' study of real sites: within a scenario
a pair is a class, its value the AUROC, averaged over seeds. Scenarios and classes are assumed to be
independent, as in the papers.

A family consists of the lines with the same pairing, test set and group: all other rows and, of
"classes", all scenarios. Within it p is adjusted by Holm's procedure.

`class_tests` has one line for each scenario, other row, seed, test set and class of the test set:

    scenario, method, strategy, seed    of the other row's run
    test, class
    images, patients                   with a label of the class
    positives                          among the images
    surgical, other                    AUROCs
    difference, low, high              surgical minus other, with its 95 % interval
    z, p                               see `DelongTest`
    tests, holm, mark                  size of the line's family, p adjusted for it, and its mark

Models are those that `compared_model` chooses. NaN is not defined: a model lacks the class, or the
test set has fewer than two positives or two negatives.

Here a family consists of the classes with the same scenario, row, seed and test set. Seeds are not
pooled: their models are tested on images that are partly or all the same, so their p values are not
those of independent tests, and a median of them is no p value.

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

from cxr_studies.analysis.intervals_and_tests import (
    compare_pairs,
    delong_test,
    holm,
    significance_mark,
)
from cxr_studies.analysis.study_results import (
    RUN,
    StudyResults,
    by_group,
    compared_predictions,
    reference,
    run_in_processes,
    with_table_models,
)
from cxr_studies.plan.run_folder import SERVER, Result
from cxr_study.data.labels.label_table import classes as class_columns

SCENARIOS, RUNS, CLASSES = "scenarios", "runs", "classes"
"""Kinds of pairing."""

DELONG_WARNING = (
    "DeLong's test takes images for independent. Where patients have several, they are not: its p "
    "values are too small and its intervals too narrow. Those by patient account for it."
)
"""To be shown wherever a line of `class_tests` has more images than patients."""

FAMILY = ["pairing", "test", "group"]
"""Columns that the lines of a family of `significance` have in common."""
CLASS_FAMILY = ["scenario", "method", "strategy", "seed", "test"]
"""Columns that the lines of a family of `class_tests` have in common."""

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
    """Test surgical aggregation against every other row by paired tests.

    Args:
        results: Of the study.

    Returns:
        One line for each comparison with at least one pair; see the module's docstring for the
        columns. Empty where nothing was trained by surgical aggregation.
    """
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
    """Lines of the other rows, each with the AUROC `other` and that of the reference, `surgical`.

    Both are NaN where one of them is. `unit`: columns that identify a line within a run.
    """
    opposed: pd.DataFrame = pd.DataFrame()
    row = reference(results.runs)
    if row is None:
        return opposed
    models = with_table_models(lines).groupby([*RUN, "group", *unit], sort=False)
    lines = models[["auroc"]].mean().reset_index()
    ours = (lines["method"] == row.method) & (lines["strategy"] == row.strategy)
    same = ["scenario", "seed", "test", "group", *unit]
    used = lines.loc[ours & (lines["model"] != SERVER), [*same, "auroc"]]
    opposed = lines[~ours].merge(used, on=same, suffixes=("", "_ours"))
    opposed = opposed.rename(columns={"auroc": "other", "auroc_ours": "surgical"})
    defined = opposed["other"].notna() & opposed["surgical"].notna()
    opposed.loc[~defined, ["other", "surgical"]] = np.nan
    return opposed


def _lines(
    pairing: str, opposed: pd.DataFrame, line: Sequence[str], pair: list[str]
) -> list[dict[str, Any]]:
    """A test for each group of lines that agree in the columns `line`; `pair`: those of a pair."""
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


def class_tests(results: StudyResults, *, processes: int = 1) -> pd.DataFrame:
    """Test surgical aggregation against every other row by DeLong's test, class by class.

    Args:
        results: Of the study.
        processes: Number of processes that share the work.

    Returns:
        One line for each class of each test set that both runs have; see the module's docstring.
    """
    pairs, kept = list(results.pairs()), results.results
    jobs = [(results.folder, (a.key, kept[a.key]), (b.key, kept[b.key])) for a, b in pairs]
    found = run_in_processes("testing classes", _of_classes, jobs, processes)
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
    ours, theirs = compared_predictions(folder, *surgical), compared_predictions(folder, *other)
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
    """Add the columns tests, holm and mark to lines of tests.

    Args:
        lines: With a column p, NaN where a test could not decide.
        family: Columns that the lines of a family have in common; see `holm`.

    Returns:
        A new data frame in the same order.
    """

    def adjust(p_values: pd.Series) -> pd.Series:
        return pd.Series(holm(p_values.to_numpy(float)), p_values.index)

    families = lines.groupby(family)["p"]
    lines = lines.assign(tests=families.transform("count"), holm=families.transform(adjust))
    return lines.assign(mark=[significance_mark(p) for p in lines["holm"]])
