"""What happens from round to round: a panel per scenario, with a line per row."""

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
from cxr_studies.report.figures.style import LOOK, evenly, lined, marked
from cxr_study.reports.page.drawing import svg

POINTS = 24
"""Of a line at most: those of long runs are thinned out evenly."""

CLOSEST = 1e-5
"""One minus the similarity is drawn as if it were no less: columns that are the same have none."""

_TITLE = 20  # characters that fit over a panel

Bands = Mapping[tuple[str, Row], pd.DataFrame]
"""(scenario, row) -> mean, low and high, by place on the horizontal axis: a line for each of rounds
0, 1, ...; NaN where not defined."""


@mpl.rc_context(LOOK)
def convergence(results: StudyResults, name: str) -> str | None:
    """Draw the mean validation BCE over rounds.

    Lines are means over seeds, as far as every seed has come, in a band from the lowest to the
    highest; markers are the best rounds of all seeds, whose models are tested. A round's value is
    that of the model that started it; the last one is the final model's. Sites that train alone
    may have their best rounds after the first of them has stopped: then there is no marker. If
    unlabelled classes count as negative, they do so in the validation BCE as well: it is lower.
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
        panel_of[scenario].plot(best, losses, **marked(row))
    next(iter(panel_of.values())).set_ylabel("validation BCE")
    return svg(figure, name, "Validation BCE over rounds, in each scenario")


@mpl.rc_context(LOOK)
def learning(results: StudyResults, name: str) -> str | None:
    """Draw the mean validation AUROC over the training images that all sites together have seen.

    Lines and bands are those of `convergence`. Runs in which neither was kept are left out.
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


@mpl.rc_context(LOOK)
def drift(results: StudyResults, name: str) -> str | None:
    """Draw the cosine similarity of the columns that sites send for a class, over rounds.

    Lines are means over classes and seeds, as far as every seed has come, in a band from the least
    to the most alike. The axis is one of nines: 0.9 is as far from 0.99 as that from 0.999. Rows
    without a federation, or without a class of two sites, have no line.
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
        panel_of[scenario].plot([len(band) - 1], band["mean"].iloc[-1:], **marked(row))
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
    """Mean and ends of each round's values, a frame's line; those defined in any round."""
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
        drawn = band.iloc[evenly(len(band), POINTS)]
        axes, looks = panel_of[scenario], lined(row)
        if (band["high"] > band["low"]).any():
            edges = drawn["low"], drawn["high"]
            axes.fill_between(drawn.index, *edges, color=looks["color"], alpha=0.15, linewidth=0)
        axes.plot(drawn.index, drawn["mean"], **looks)
    for axes in every:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    return figure, panel_of
