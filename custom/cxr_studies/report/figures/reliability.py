"""Whether the probabilities that models give are right: reliability diagrams."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np

from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.plan import kept_tables
from cxr_studies.plan.row import TITLES, Row
from cxr_studies.plan.run_folder import RUNS, TEST_SETS
from cxr_studies.report.figures import style
from cxr_studies.report.figures.style import LOOK, lined, marked
from cxr_studies.report.tables.layouts import TESTS
from cxr_studies.runner import prediction_files
from cxr_study.common.wording import FEW_IMAGES
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.evaluation.calibration import Bin, calibration_error, reliability
from cxr_study.reports.page import drawing as page
from cxr_study.reports.page.drawing import svg

_TICKS = [0, 0.5, 1], ["0", "0.5", "1"]
_LEGEND: dict[str, Any] = {
    "loc": "lower right", "edgecolor": "none", "fontsize": 7, "title_fontsize": 7,
    "alignment": "right", "handlelength": 1.6, "handletextpad": 0.4, "labelspacing": 0.2,
    "borderpad": 0.1, "borderaxespad": 0.2,
}  # fmt: skip


@mpl.rc_context(LOOK)
def reliability_diagram(results: StudyResults, scenario: str, test: str, name: str) -> str | None:
    """Draw the share of positive images among predictions of about the same probability.

    A panel per method, with a line per strategy and its expected calibration error (ECE), over the
    predictions of all classes, all seeds and the models of `style.models_tested` together. There
    are ten bins of equal width; one with fewer than `wording.FEW_IMAGES` predictions has no marker.
    """
    bins = {row: _pooled(results, scenario, row, test) for row in style.rows(results)}
    methods = list(dict.fromkeys(row.method for row, found in bins.items() if found))
    if not methods:
        return None
    titles = [TITLES[method].replace(", ", ",\n") for method in methods]
    below = f"probability on {TESTS[test]}"
    figure, every = style.panels(titles, (), height=1.6, below=below)
    for axes, method in zip(every, methods, strict=True):
        axes.plot([0, 1], [0, 1], color=page.MUTED, linewidth=0.8)
        for row, found in bins.items():
            if row.method == method and found:
                seen = [(b.probability, b.observed) for b in found if b.predictions >= FEW_IMAGES]
                label = f"{row.strategy} {calibration_error(found):.3f}"
                points = np.array(seen, float).reshape(-1, 2).T
                axes.plot(*points, label=label, **marked(row) | lined(row))
        axes.legend(title="pooled ECE", **_LEGEND)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_xticks(*_TICKS)
        axes.set_yticks(*_TICKS)
    every[0].set_ylabel("share positive")
    return svg(figure, name, f"Reliability diagrams on {TESTS[test]}, {scenario}")


def _pooled(results: StudyResults, scenario: str, row: Row, test: str) -> tuple[Bin, ...] | None:
    """Bins of all that a row predicts; None if it predicts nothing."""
    labels, probabilities = [np.zeros(0)], [np.zeros(0)]
    for run in results.finished:
        result = results.results[run.key]
        if (run.scenario, run.row) != (scenario, row) or test not in result.tests:
            continue
        table = kept_tables.read(result.tests[test], results.folder / TEST_SETS)
        labelled = class_columns(table)
        for model in style.models_tested(result.classes, test):
            predicted = prediction_files.read(results.folder / RUNS / run.key, model, test)
            for number, name in enumerate(result.classes[model]):
                if name in labelled:
                    labels.append(table[name].to_numpy(float))
                    probabilities.append(predicted[:, number].astype(float))
    bins = reliability(np.concatenate(labels), np.concatenate(probabilities))
    return bins if any(each.predictions for each in bins) else None
