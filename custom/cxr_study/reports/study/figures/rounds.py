"""Panels of what happens from round to round: one per setting, with a line per row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.figures.looks import evenly, lined, rows, settings
from cxr_study.reports.study.figures.panels import label_below, panels
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.plan.run_folder import Result

POINTS = 24
"""Of a line at most: those of long runs are thinned out evenly."""

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
"""(setting, row) -> what is drawn."""


def results_of(results: StudyResults) -> dict[tuple[str, Row], list[Result]]:
    """(setting, row) -> what is kept of its finished runs, seed by seed; in the file's order."""
    found: dict[tuple[str, Row], list[Result]] = {
        (setting, row): [] for setting in settings(results) for row in rows(results)
    }
    for run in results.finished:
        found[run.setting, run.row].append(results.results[run.key])
    return {key: several for key, several in found.items() if several}


def draw(results: StudyResults, bands: Bands) -> tuple[Figure, dict[str, Axes]]:
    """Draw bands; needs one or more.

    Returns:
        The figure, and the panel of each setting.
    """
    places = list(dict.fromkeys(setting for setting, _ in bands))
    shown = [row for row in rows(results) if row in {row for _, row in bands}]
    figure, every = panels([_title(results, place) for place in places], shown, height=1.7)
    panel_of = dict(zip(places, every, strict=True))
    for (setting, row), band in bands.items():
        drawn = evenly(len(band.mean), POINTS)
        looks = lined(row)
        if (band.high > band.low).any():
            edges = band.low[drawn], band.high[drawn]
            panel_of[setting].fill_between(
                drawn, *edges, color=looks["color"], alpha=0.15, linewidth=0
            )
        panel_of[setting].plot(drawn, band.mean[drawn], **looks)
    for axes in every:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    label_below(figure, "round")
    return figure, panel_of


def _title(results: StudyResults, setting: str) -> str:
    title = f"{results.study.factor}: {setting}"
    return title if len(title) <= _TITLE else setting
