"""Whether surgical aggregation ranks a class better or worse than another row, by DeLong's test.

A data frame with one line for each scenario, other row, seed, test set and class of the test set:

    scenario, method, strategy, seed    of the other row's run
    test, class
    images, patients                   with a label of the class
    positives                          among the images
    surgical, other                    AUROCs
    difference, low, high              surgical minus other, with its 95 % interval
    z, p                               see `delong.DelongTest`
    tests, holm, mark                  size of the line's family, p adjusted for it, and its mark

Models are as `counts_on` has them. NaN is not defined: a model lacks the class, or the
test set has fewer than two positives or two negatives.

A family is what has scenario, row, seed and test set in common: the classes. Seeds are not pooled:
their models are tested on images that are partly or all the same, so their p values are not those
of independent tests, and a median of them is no p value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cxr_studies.analysis.delong import delong_test
from cxr_studies.analysis.parallel import shared_out
from cxr_studies.analysis.significance import ADJUSTED, adjusted
from cxr_studies.analysis.study_results import StudyResults, counts_on
from cxr_studies.plan import kept_tables
from cxr_studies.plan.run_folder import RUNS, TEST_SETS, Result
from cxr_studies.runner import prediction_files
from cxr_study.common.progress import Report
from cxr_study.data.labels.label_table import classes as class_columns

WARNING = (
    "DeLong's test takes images for independent. Where patients have several, they are not: its p "
    "values are too small and its intervals too narrow. Those by patient account for it."
)
"""To be said wherever a line has more images than patients."""

Kept = tuple[str, Result]
"""A finished run: its key, and what is kept of it."""

FAMILY = ["scenario", "method", "strategy", "seed", "test"]
"""Columns that lines of a family have in common."""

_FIGURES = {"surgical": "first", "other": "second"} | {
    figure: figure for figure in ("difference", "low", "high", "z", "p")
}  # column -> of a `DelongTest`

_COLUMNS = [*FAMILY, "class", "images", "patients", "positives", *_FIGURES, *ADJUSTED]


def class_tests(
    results: StudyResults, *, processes: int = 1, report: Report = lambda done, total: None
) -> pd.DataFrame:
    """Test surgical aggregation against every other row, class by class; see above."""
    pairs = list(results.pairs())
    kept = results.results
    jobs = [(results.folder, (a.key, kept[a.key]), (b.key, kept[b.key])) for a, b in pairs]
    found = shared_out(_tested, jobs, processes=processes, report=report)
    lines = [
        {**run.facts, **line}
        for (_, run), tested in zip(pairs, found, strict=True)
        for line in tested
    ]
    frame = pd.DataFrame(lines, columns=_COLUMNS).astype(dict.fromkeys(_FIGURES, float))
    return adjusted(frame, FAMILY)


def _tested(folder: Path, surgical: Kept, other: Kept) -> list[dict[str, Any]]:
    """Two runs on the test sets that they have in common, class by class."""
    lines = []
    for test, table_key in surgical[1].tests.items():
        if other[1].tests.get(test) != table_key:
            continue
        first, second = _scores(folder, surgical, test), _scores(folder, other, test)
        if not first or not second:
            continue
        table = kept_tables.read(table_key, folder / TEST_SETS)
        for name in class_columns(table):
            labels = table[name].to_numpy(float)
            lacking = np.full(len(labels), np.nan)
            found = delong_test(labels, first.get(name, lacking), second.get(name, lacking))
            known = ~np.isnan(labels)
            lines.append(
                {
                    "test": test,
                    "class": name,
                    "images": int(known.sum()),
                    "patients": int(table.loc[known, "patient"].nunique()),
                    "positives": int((labels == 1).sum()),
                    **{column: getattr(found, figure, None) for column, figure in _FIGURES.items()},
                }
            )
    return lines


def _scores(folder: Path, run: Kept, test: str) -> Mapping[str, np.ndarray]:
    """Class -> probabilities of the model that counts on a test set; empty: none does."""
    key, result = run
    model = counts_on(result.classes, test)
    if model is None:
        return {}
    predicted = prediction_files.read(folder / RUNS / key, model, test)
    return dict(zip(result.classes[model], predicted.T, strict=True))
