"""Means over folds, with intervals by patient, of sites whose patients are cut into folds.

Each patient is tested in one fold. An AUROC is that of each fold, averaged: models of different
folds rank no patients together. Where several seeds test the same fold, they are averaged as well.
Resamples are drawn fold by fold, the same for all rows, so that differences are paired.

The data frame has a line for each pair of rows, or for a row by itself, and group of classes:

    scenario, method, strategy            of the row
    other_method, other_strategy          of the row that is subtracted; "" where none is
    group                                 of `GROUPS`, each class at each site counts once
    classes                               how many (class, site) the means are over
    auroc, auroc_low, auroc_high          mean, or difference, with its 95 % interval

Classes with few patients are in no mean: see `FEWEST`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import numpy as np
import pandas as pd

from cxr_studies.analysis.patient_intervals import reached
from cxr_studies.analysis.study_results import StudyResults, counts_on, with_ends
from cxr_studies.plan.row import Row
from cxr_study.common.progress import Report
from cxr_study.evaluation.bootstrap import percentile_interval

FEWEST = 30
"""Patients with a positive image, and with a negative one, at a site and over all folds."""

GROUPS = {
    "own": ("shared", "unique"),
    "shared": ("shared",),
    "unique": ("unique",),
    "elsewhere": ("elsewhere",),
}
"""Name -> of which kinds of classes: those that all sites label, or several, that the tested site
alone does, and that others do."""

_KEYS = ["scenario", "method", "strategy", "other_method", "other_strategy", "group", "classes"]
_Areas = dict[tuple[str, str], np.ndarray]  # (site, class) -> AUROC itself, then on resamples


def across_folds(
    results: StudyResults,
    folds: int,
    *,
    resamples: int = 1000,
    processes: int = 1,
    report: Report = lambda done, total: None,
) -> pd.DataFrame:
    """The data frame; see above.

    Args:
        results: Of a study whose data file has the key `folds`.
        folds: How many there are; a run's fold is its seed modulo that.
        resamples: Of the patients.
        processes: How many share the work.
        report: Called after each run.
    """
    found = reached(results, resamples=resamples, processes=processes, report=report)
    rows = []
    for scenario in dict.fromkeys(run.scenario for run in results.finished):
        areas: dict[Row, _Areas] = {}
        for row in dict.fromkeys(run.row for run in results.finished if run.scenario == scenario):
            several: dict[tuple[str, str], list[np.ndarray]] = {}
            fewest: dict[tuple[str, str], dict[int, int]] = {}
            for run in results.finished:
                if (run.scenario, run.row) != (scenario, row):
                    continue
                for (model, test), each in found[run.key].items():
                    if model != counts_on(results.results[run.key].classes, test):
                        continue
                    drawn = np.vstack([each.values["auroc"], each.drawn["auroc"]]).T
                    for name, few, area in zip(each.classes, each.fewest, drawn, strict=True):
                        several.setdefault((test, name), []).append(area)
                        fewest.setdefault((test, name), {})[run.seed % folds] = int(few)
            areas[row] = {
                place: np.ma.masked_invalid(all_).mean(axis=0).filled(np.nan)
                for place, all_ in several.items()
                if sum(fewest[place].values()) >= FEWEST
            }
        kinds = _kinds(results, scenario)
        pairs = [(row, None) for row in areas] + list(permutations(areas, 2))
        for row, other in pairs:
            rows += _lines(scenario, row, other, areas, kinds)
    return pd.DataFrame(rows, columns=[*_KEYS, *with_ends("auroc")])


def _kinds(results: StudyResults, scenario: str) -> dict[tuple[str, str], str]:
    """(Site, class) -> which of the kinds of classes it is there."""
    scores = results.scores[results.scores["scenario"] == scenario]
    scores = scores.drop_duplicates(["test", "class"])
    labelled = np.where(scores["sites"] > 1, "shared", "unique")
    kind = np.where(scores["labelled"], labelled, "elsewhere")
    return dict(zip(zip(scores["test"], scores["class"], strict=True), kind.tolist(), strict=True))


def _lines(
    scenario: str,
    row: Row,
    other: Row | None,
    areas: Mapping[Row, _Areas],
    kinds: Mapping[tuple[str, str], str],
) -> list[dict[str, object]]:
    """A line for each group of which both rows have a class."""
    lines: list[dict[str, object]] = []
    for group, of in GROUPS.items():
        places = [
            place
            for place in areas[row]
            if kinds[place] in of and (other is None or place in areas[other])
        ]
        if not places:
            continue
        each = [areas[row][place] - (areas[other][place] if other else 0.0) for place in places]
        mean = np.ma.masked_invalid(each).mean(axis=0).filled(np.nan)
        keys = (
            *(scenario, row.method, row.strategy),
            *((other.method, other.strategy) if other else ("", "")),
            *(group, len(places)),
        )
        ends = with_ends("auroc", float(mean[0]), *percentile_interval(mean[1:]))
        lines.append({**dict(zip(_KEYS, keys, strict=True)), **ends})
    return lines
