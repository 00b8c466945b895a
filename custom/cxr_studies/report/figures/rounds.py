"""Curves over rounds: a panel per scenario, with a line per row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from statistics import fmean

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import Result
from cxr_studies.report.figures import style
from cxr_studies.report.figures.style import RC_PARAMS, evenly_spaced, line_style, marker_style
from cxr_study.reports.page.drawing import svg

POINTS = 24
"""Largest number of points of a line: those of long runs are thinned out evenly."""

CLOSEST = 1e-5
"""Smallest value of one minus the similarity that is drawn, as identical columns have none on a
logarithmic axis."""

_TITLE = 20  # characters that fit over a panel

Bands = Mapping[tuple[str, Row], pd.DataFrame]
"""(scenario, row) -> mean, low and high, by place on the horizontal axis: a line for each of rounds
0, 1, ...; NaN where not defined."""


@mpl.rc_context(RC_PARAMS)
def convergence(results: StudyResults, name: str) -> str | None:
    """Draw the mean validation BCE over rounds.

    Lines are means over seeds, up to the last round that every seed has, in a band from the lowest
    to the highest; markers are the best rounds of all seeds, whose models are tested. A round's
    value is that of the model that started it; the last one is the final model's. Sites that train
    alone may have their best rounds after the first of them has stopped: then there is no marker.
    If unlabelled classes count as negative, they do so in the validation BCE as well, which is
    therefore lower.

    Args:
        results: Of the study.
        name: See `figures`.

    Returns:
        None where no loss is defined.
    """
    found = _by_row(results)
    every = {
        key: pd.DataFrame(list(zip_longest(*(each.losses for each in several))), dtype=float)
        for key, several in found.items()
    }
    bands = _bands(every, skipna=False)
    if not bands:
        return None
    figure, panel_of = _draw(results, bands)
    for scenario, row in bands:
        known = [each for each in found[scenario, row] if each.best_round < len(each.losses)]
        best = [each.best_round for each in known]
        losses = np.array([each.losses[each.best_round] for each in known], float)
        panel_of[scenario].plot(best, losses, **marker_style(row))
    next(iter(panel_of.values())).set_ylabel("validation BCE")
    return svg(figure, name, "Validation BCE over rounds, in each scenario")


@mpl.rc_context(RC_PARAMS)
def learning(results: StudyResults, name: str) -> str | None:
    """Draw the mean validation AUROC over the training images that all sites together have seen.

    Lines and bands are those of `convergence`. Runs without these numbers are left out.

    Args:
        results: Of the study.
        name: See `figures`.

    Returns:
        None where no run has them.
    """
    every = {}
    for key, several in _by_row(results).items():
        if kept := [each for each in several if each.aurocs]:
            values = pd.DataFrame(list(zip_longest(*(each.aurocs for each in kept))), dtype=float)
            every[key] = values.set_index(values.index * fmean(each.images for each in kept))
    bands = _bands(every, skipna=False)
    if not bands:
        return None
    figure, panel_of = _draw(results, bands, across="images seen, by all sites together")
    for axes in panel_of.values():
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    next(iter(panel_of.values())).set_ylabel("validation AUROC")
    return svg(figure, name, "Validation AUROC over images seen, in each scenario")


@mpl.rc_context(RC_PARAMS)
def drift(results: StudyResults, name: str) -> str | None:
    """Draw the cosine similarity of the columns that sites send for a class, over rounds.

    Lines are means over classes and seeds, up to the last round that every seed has, in a band from
    the least to the most similar. The axis is logarithmic in one minus the similarity: 0.9 is as
    far from 0.99 as that from 0.999. Rows without a federation, or without a class of two sites,
    have no line.

    Args:
        results: Of the study.
        name: See `figures`.

    Returns:
        None where there is no line.
    """
    every = {}
    for key, several in _by_row(results).items():
        rounds = min(len(each.column_similarity) for each in several)
        tables = [pd.DataFrame(list(each.column_similarity)) for each in several]
        every[key] = (1 - pd.concat(tables, axis=1).iloc[:rounds]).clip(lower=CLOSEST)
    bands = _bands(every, skipna=True)
    if not bands:
        return None
    figure, panel_of = _draw(results, bands)
    for (scenario, row), band in bands.items():
        panel_of[scenario].plot([len(band) - 1], band["mean"].iloc[-1:], **marker_style(row))
    first = next(iter(panel_of.values()))
    ends = pd.concat(list(bands.values()))
    first.set_ylim(1.3 * ends["high"].max(), ends["low"].min() / 1.3)
    first.set_yscale("log")
    first.yaxis.set_minor_locator(NullLocator())
    first.yaxis.set_major_formatter(lambda value, _: f"{1 - value:.5g}")
    first.set_ylabel("cosine similarity")
    return svg(figure, name, "Cosine similarity of the columns of a class, over rounds")


def _by_row(results: StudyResults) -> dict[tuple[str, Row], list[Result]]:
    """(scenario, row) -> results of its finished runs, seed by seed; in the study file's order."""
    found: dict[tuple[str, Row], list[Result]] = {
        (scenario, row): [] for scenario in style.scenarios(results) for row in style.rows(results)
    }
    for run in results.finished:
        found[run.scenario, run.row].append(results.results[run.key])
    return {key: several for key, several in found.items() if several}


def _bands(every: Mapping[tuple[str, Row], pd.DataFrame], *, skipna: bool) -> Bands:
    """Mean, smallest and largest value of each round, for keys with a value in any round."""
    bands = {}
    for key, values in every.items():
        mean = values.mean(axis=1, skipna=skipna)
        ends = values.min(axis=1, skipna=skipna), values.max(axis=1, skipna=skipna)
        if mean.notna().any():
            bands[key] = pd.DataFrame({"mean": mean, "low": ends[0], "high": ends[1]})
    return bands


def _draw(
    results: StudyResults, bands: Bands, across: str = "round"
) -> tuple[Figure, dict[str, Axes]]:
    """Draw one band or more; the figure, and the panel of each scenario."""
    places = list(dict.fromkeys(scenario for scenario, _ in bands))
    shown = [row for row in style.rows(results) if row in {row for _, row in bands}]
    titles = [f"{results.study.factor}: {place}" for place in places]
    fitting = [t if len(t) <= _TITLE else p for t, p in zip(titles, places, strict=True)]
    figure, every = style.panels(fitting, shown, height=1.7, below=across)
    panel_of = dict(zip(places, every, strict=True))
    for (scenario, row), band in bands.items():
        drawn = band.iloc[evenly_spaced(len(band), POINTS)]
        axes, looks = panel_of[scenario], line_style(row)
        if (band["high"] > band["low"]).any():
            edges = drawn["low"], drawn["high"]
            axes.fill_between(drawn.index, *edges, color=looks["color"], alpha=0.15, linewidth=0)
        axes.plot(drawn.index, drawn["mean"], **looks)
    for axes in every:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    return figure, panel_of
