"""A map of the test images by the features of a global model."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.plan import kept_tables
from cxr_studies.plan.planned_run import Run
from cxr_studies.plan.run_folder import RUNS, TEST_SETS
from cxr_studies.report.figures.style import LOOK, evenly
from cxr_studies.report.tables.layouts import TESTS
from cxr_studies.runner import prediction_files
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.reports.page import drawing as page
from cxr_study.reports.page.drawing import svg

MOST = 420
"""Images of all test sets together, at most; spread evenly over each."""

FEWEST = 10
"""With fewer images there is nothing to see."""

_TESTS = {"nih": ("#4B3B9E", "s"), "chexpert": ("#00806A", "D"), "mimic": ("#A87400", "^")}
_PRESENT, _ABSENT = (page.LOCAL, "^"), ("#B9C3CC", "s")
_HEIGHT = 3.2

Looks = Mapping[str, tuple[str, str]]  # kind -> colour and marker


@mpl.rc_context(LOOK | {"axes.grid": False})
def embedding(results: StudyResults, scenario: str, name: str) -> str | None:
    """Draw a t-SNE map of test images, by the features of surgical aggregation's global model.

    Twice: coloured by test set, and by the class that most images are positive for, without the
    images that are not labelled for it. The model is that of the first seed, with batch norm frozen
    if there is one. None without such a model, or with fewer than `FEWEST` images.

    Source:
        van der Maaten and Hinton, Visualizing Data using t-SNE, JMLR 9, 2008, 2579-2605; started
        from the principal components, with a fixed seed.
    """
    chosen = [
        run
        for run in results.finished
        if (run.scenario, run.row.method) == (scenario, "surgical")
        and "global" in results.results[run.key].classes
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
    by_test = {TESTS[test]: _TESTS[test] for test in images["test"].unique()}
    most = str(images.drop(columns="test").eq(1).sum().idxmax())
    kinds = {0.0: f"no {most}", 1.0: most}
    by_class = dict(zip(kinds.values(), (_ABSENT, _PRESENT), strict=True))
    figure = Figure((page.WIDTH, _HEIGHT), layout="constrained")
    left, right = figure.subplots(1, 2)
    _map(left, places, images["test"].map(TESTS), by_test)
    _map(right, places, images[most].map(kinds), by_class)
    return svg(figure, name, f"Map of test images by the features of {run.name}")


def _images(results: StudyResults, run: Run) -> tuple[pd.DataFrame, np.ndarray]:
    """Labels and test set of the images, a row for each, and their features."""
    tests = results.results[run.key].tests
    tables, features = [], []
    for test, key in tests.items():
        table = kept_tables.read(key, results.folder / TEST_SETS)
        found = prediction_files.read_features(results.folder / RUNS / run.key, "global", test)
        kept = evenly(len(found), MOST // len(tests))
        rows = prediction_files.featured_rows(len(table))[kept]
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
