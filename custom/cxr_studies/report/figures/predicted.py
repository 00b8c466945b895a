"""Predictions on test images: reliability diagrams, and a map of the images by their features."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.plan.row import TITLES, Row
from cxr_studies.plan.run_folder import (
    FEATURES_FILE,
    GLOBAL,
    RUNS,
    TEST_SETS,
    Run,
    featured_rows,
    predictions,
    read_array,
    read_table,
)
from cxr_studies.report.figures import style
from cxr_studies.report.figures.style import RC_PARAMS, evenly_spaced, line_style, marker_style
from cxr_studies.report.tables.layouts import TESTS
from cxr_study.common.wording import FEW_IMAGES
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.evaluation.calibration_error import Bin, calibration_error, reliability
from cxr_study.reports.page import drawing as page
from cxr_study.reports.page.drawing import svg

MOST = 420
"""Images of all test sets together, at most; spread evenly over each."""

FEWEST = 10
"""Least number of images for a map."""

_TESTS = {"nih": ("#4B3B9E", "s"), "chexpert": ("#00806A", "D"), "mimic": ("#A87400", "^")}
_OTHERS = ("#A3003F", "o"), ("#3C6E00", "v"), ("#2F6F9F", "P"), ("#555555", "X")
_PRESENT, _ABSENT = (page.LOCAL, "^"), ("#B9C3CC", "s")
_HEIGHT = 3.2

Looks = Mapping[str, tuple[str, str]]  # kind -> colour and marker

_TICKS = [0, 0.5, 1], ["0", "0.5", "1"]
_LEGEND: dict[str, Any] = {
    "loc": "lower right", "edgecolor": "none", "fontsize": 7, "title_fontsize": 7,
    "alignment": "right", "handlelength": 1.6, "handletextpad": 0.4, "labelspacing": 0.2,
    "borderpad": 0.1, "borderaxespad": 0.2,
}  # fmt: skip


@mpl.rc_context(RC_PARAMS)
def reliability_diagram(results: StudyResults, scenario: str, test: str, name: str) -> str | None:
    """Draw the share of positive images among predictions of about the same probability.

    A panel per method, with a line per strategy and its expected calibration error (ECE), over the
    predictions of all classes, all seeds and the models of `style.models_tested` together. There
    are ten bins of equal width; one with fewer than `wording.FEW_IMAGES` predictions has no marker.

    Args:
        results: Of the study.
        scenario: Name of the scenario.
        test: Name of the test set.
        name: See `figures`.

    Returns:
        None where nothing is predicted.
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
                axes.plot(*points, label=label, **marker_style(row) | line_style(row))
        axes.legend(title="pooled ECE", **_LEGEND)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_xticks(*_TICKS)
        axes.set_yticks(*_TICKS)
    every[0].set_ylabel("share positive")
    return svg(figure, name, f"Reliability diagrams on {TESTS[test]}, {scenario}")


def _pooled(results: StudyResults, scenario: str, row: Row, test: str) -> tuple[Bin, ...] | None:
    """Calibration bins over everything that a row predicts; None if it predicts nothing."""
    labels, probabilities = [np.zeros(0)], [np.zeros(0)]
    for run in results.finished:
        if (run.scenario, run.row) != (scenario, row):
            continue
        result = results.results[run.key]
        for each in predictions(results.folder, run.key, result):
            if each.test == test and each.model in style.models_tested(result.classes, test):
                for name in each.scores.columns.intersection(class_columns(each.table)):
                    labels.append(each.table[name].to_numpy(float))
                    probabilities.append(each.scores[name].to_numpy(float))
    bins = reliability(np.concatenate(labels), np.concatenate(probabilities))
    return bins if any(each.predictions for each in bins) else None


@mpl.rc_context(RC_PARAMS | {"axes.grid": False})
def embedding(results: StudyResults, scenario: str, name: str) -> str | None:
    """Draw a t-SNE map of test images, by the features of surgical aggregation's global model.

    The map is drawn twice: colored by test set, and by the class that most images are positive for,
    without the images that are not labelled for it. The model is that of the first seed, with batch
    norm frozen if there is one.

    Args:
        results: Of the study.
        scenario: Name of the scenario.
        name: See `figures`.

    Returns:
        None without such a model, or with fewer than `FEWEST` images.

    Source:
        van der Maaten and Hinton, Visualizing Data using t-SNE, JMLR 9, 2008, 2579-2605; started
        from the principal components, with a fixed seed.
    """
    chosen = [
        run
        for run in results.finished
        if (run.scenario, run.row.method) == (scenario, "surgical")
        and GLOBAL in results.results[run.key].classes
    ]
    if not chosen:
        return None
    run = min(chosen, key=lambda run: (run.row.strategy != "fedbn+", run.seed))
    images, features = _images(results, run)
    if len(images) < FEWEST:
        return None
    map_ = TSNE(init="pca", perplexity=min(30, len(images) / 4), random_state=0)
    with threadpool_limits(1):  # sums in one order: two pages show the same map
        places = map_.fit_transform(features)
    others = cycle(_OTHERS)
    by_test = {TESTS[t]: _TESTS.get(t) or next(others) for t in images["test"].unique()}
    most = str(images.drop(columns="test").eq(1).sum().idxmax())
    kinds = {0.0: f"no {most}", 1.0: most}
    by_class = dict(zip(kinds.values(), (_ABSENT, _PRESENT), strict=True))
    figure = Figure((page.WIDTH, _HEIGHT), layout="constrained")
    left, right = figure.subplots(1, 2)
    _map(left, places, images["test"].map(TESTS), by_test)
    _map(right, places, images[most].map(kinds), by_class)
    return svg(figure, name, f"Map of test images by the features of {run.name}")


def _images(results: StudyResults, run: Run) -> tuple[pd.DataFrame, np.ndarray]:
    """Labels and test set of the images, a row for each, and their features (images, features)."""
    tests = results.results[run.key].tests
    file = results.folder / RUNS / run.key / FEATURES_FILE
    tables, features = [], []
    for test, key in tests.items():
        table = read_table(key, results.folder / TEST_SETS)
        found = read_array(file, GLOBAL, test)
        kept = evenly_spaced(len(found), MOST // len(tests))
        rows = featured_rows(len(table))[kept]
        tables.append(table.loc[rows, class_columns(table)].assign(test=test))
        features.append(found[kept])
    return pd.concat(tables, ignore_index=True), np.concatenate(features)


def _map(axes: Axes, places: np.ndarray, kinds: pd.Series, looks: Looks) -> None:
    """A square panel with the points of each kind."""
    axes.set(xticks=[], yticks=[], box_aspect=1)
    axes.spines[:].set_visible(True)
    for kind, (colour, marker) in looks.items():
        x, y = places[kinds == kind].T
        axes.plot(x, y, marker, color=colour, markersize=2.6, linestyle="none", label=kind)
    page.legend_above(axes, -0.03, ncols=3, handletextpad=0.2, columnspacing=1.0)
