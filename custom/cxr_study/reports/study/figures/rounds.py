"""What happens from round to round: validation BCE, and whether sites' columns drift apart.

A panel per scenario, with a line per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.panels import label_below, panels
from cxr_study.reports.study.figures.style import (
    LOOK,
    evenly,
    lined,
    marked,
    rows,
    scenarios,
    svg,
)
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.plan.run_folder import Result

POINTS = 24
"""Of a line at most: those of long runs are thinned out evenly."""

CLOSEST = 1e-5
"""One minus the similarity is drawn as if it were no less: columns that are the same have none."""

_TITLE = 20  # characters that fit over a panel


@dataclass(frozen=True, eq=False)
class Band:
    """A line in a band over rounds 0, 1, ...; each shape (rounds,), NaN where not defined.

    Attributes:
        mean: The line.
        low: Lower edge of the band.
        high: Upper edge.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


Bands = Mapping[tuple[str, Row], Band]
"""(scenario, row) -> what is drawn."""


@mpl.rc_context(LOOK)
def convergence(results: StudyResults, name: str) -> str | None:
    """Draw the mean validation BCE over rounds: a panel per scenario, a line per row.

    Lines are means over seeds, as far as every seed has come, in a band from the lowest to the
    highest; markers are the best rounds of all seeds, whose models are tested. A round's value is
    that of the model which started it; the last one is the final model's. Sites that train alone
    may have their best rounds after the first of them has stopped: then there is no marker. Where
    classes that a site does not label count as negative, they do so in the validation BCE as well,
    which is lower then.

    Args:
        results: Of the study.
        name: Of the element; see `page.svg.svg`.

    Returns:
        None where no loss is defined.
    """
    found = results_of(results)
    bands = _bands(found, _losses)
    if not bands:
        return None
    figure, panel_of = draw(results, bands)
    for scenario, row in bands:
        known = [each for each in found[scenario, row] if each.best_round < len(each.losses)]
        best = [each.best_round for each in known]
        losses = np.array([each.losses[each.best_round] for each in known], float)
        panel_of[scenario].plot(best, losses, **marked(row))
    next(iter(panel_of.values())).set_ylabel("validation BCE")
    return svg(figure, name, "Validation BCE over rounds, in each scenario")


@mpl.rc_context(LOOK)
def drift(results: StudyResults, name: str) -> str | None:
    """Draw how alike the columns are that sites send for a class: a panel per scenario.

    Lines are means of the cosine similarity over classes and seeds, as far as every seed has come,
    in a band from the least to the most alike. The axis is one of nines: 0.9 is as far from 0.99 as
    that from 0.999. Rows without a federation, or without a class of two sites, have no line.

    Args:
        results: Of the study.
        name: Of the element; see `page.svg.svg`.

    Returns:
        None where no row has a line.
    """
    bands = _bands(results_of(results), _apart)
    if not bands:
        return None
    figure, panel_of = draw(results, bands)
    for (scenario, row), band in bands.items():
        panel_of[scenario].plot([len(band.mean) - 1], band.mean[-1:], **marked(row))
    first = next(iter(panel_of.values()))
    ends = np.concatenate([[*band.low, *band.high] for band in bands.values()])
    first.set_ylim(1.3 * np.nanmax(ends), np.nanmin(ends) / 1.3)
    first.set_yscale("log")
    first.yaxis.set_minor_locator(NullLocator())
    first.yaxis.set_major_formatter(lambda value, _: f"{1 - value:.5g}")
    first.set_ylabel("cosine similarity")
    return svg(figure, name, "Cosine similarity of the columns of a class, over rounds")


def results_of(results: StudyResults) -> dict[tuple[str, Row], list[Result]]:
    """(scenario, row) -> what is kept of its finished runs, seed by seed; in the file's order."""
    found: dict[tuple[str, Row], list[Result]] = {
        (scenario, row): [] for scenario in scenarios(results) for row in rows(results)
    }
    for run in results.finished:
        found[run.scenario, run.row].append(results.results[run.key])
    return {key: several for key, several in found.items() if several}


def draw(results: StudyResults, bands: Bands) -> tuple[Figure, dict[str, Axes]]:
    """Draw bands; needs one or more.

    Returns:
        The figure, and the panel of each scenario.
    """
    places = list(dict.fromkeys(scenario for scenario, _ in bands))
    shown = [row for row in rows(results) if row in {row for _, row in bands}]
    titles = [f"{results.study.factor}: {place}" for place in places]
    short = [
        title if len(title) <= _TITLE else place
        for title, place in zip(titles, places, strict=True)
    ]
    figure, every = panels(short, shown, height=1.7)
    panel_of = dict(zip(places, every, strict=True))
    for (scenario, row), band in bands.items():
        drawn = evenly(len(band.mean), POINTS)
        axes, looks = panel_of[scenario], lined(row)
        if (band.high > band.low).any():
            edges = band.low[drawn], band.high[drawn]
            axes.fill_between(drawn, *edges, color=looks["color"], alpha=0.15, linewidth=0)
        axes.plot(drawn, band.mean[drawn], **looks)
    for axes in every:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    label_below(figure, "round")
    return figure, panel_of


def _bands(
    found: Mapping[tuple[str, Row], Sequence[Result]], band: Callable[[Sequence[Result]], Band]
) -> Bands:
    """The bands that are defined anywhere."""
    bands = {key: band(several) for key, several in found.items()}
    return {key: band for key, band in bands.items() if np.isfinite(band.mean).any()}


def _losses(several: Sequence[Result]) -> Band:
    losses = np.array(list(zip_longest(*(each.losses for each in several))), float)
    return Band(losses.mean(axis=1), losses.min(axis=1), losses.max(axis=1))


def _apart(several: Sequence[Result]) -> Band:
    """Of one minus the similarity."""
    rounds = min(len(each.column_similarity) for each in several)
    tables = [pd.DataFrame(list(each.column_similarity)) for each in several]
    apart = (1 - pd.concat(tables, axis=1).iloc[:rounds]).clip(lower=CLOSEST)
    found = (apart.mean(axis=1), apart.min(axis=1), apart.max(axis=1))
    return Band(*(each.to_numpy(float) for each in found))
