"""Whether the columns that sites send for a class drift apart."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.ticker import NullLocator

from cxr_study.reports.study.figures.looks import LOOK, marked, svg
from cxr_study.reports.study.figures.rounds import Band, draw, results_of
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.plan.run_folder import Result

CLOSEST = 1e-5
"""One minus the similarity is drawn as if it were no less: columns that are the same have none."""


def drift(results: StudyResults, name: str) -> str | None:
    """Draw how alike the columns are that sites send for a class: panels per setting, a line a row.

    Lines are means of the cosine similarity over classes and seeds, as far as every seed has come,
    in a band from the least to the most alike. The axis is one of nines: 0.9 is as far from 0.99 as
    that from 0.999. Rows without a federation, or without a class of two sites, have no line.

    Args:
        results: Of the study.
        name: Of the element; see `page.svg.svg`.

    Returns:
        None where no row has a line.
    """
    bands = {key: _band(several) for key, several in results_of(results).items()}
    bands = {key: band for key, band in bands.items() if np.isfinite(band.mean).any()}
    if not bands:
        return None
    with mpl.rc_context(LOOK):
        figure, panel_of = draw(results, bands)
        for (setting, row), band in bands.items():
            panel_of[setting].plot([len(band.mean) - 1], band.mean[-1:], **marked(row))
        first = next(iter(panel_of.values()))
        ends = np.concatenate([[*band.low, *band.high] for band in bands.values()])
        first.set_ylim(1.3 * np.nanmax(ends), np.nanmin(ends) / 1.3)
        first.set_yscale("log")
        first.yaxis.set_minor_locator(NullLocator())
        first.yaxis.set_major_formatter(lambda value, _: f"{1 - value:.5g}")
        first.set_ylabel("cosine similarity")
        return svg(figure, name, "Cosine similarity of the columns of a class, over rounds")


def _band(several: Sequence[Result]) -> Band:
    """Of one minus the similarity."""
    rounds = min(len(each.column_similarity) for each in several)
    tables = [pd.DataFrame(list(each.column_similarity)) for each in several]
    apart = (1 - pd.concat(tables, axis=1).iloc[:rounds]).clip(lower=CLOSEST)
    found = (apart.mean(axis=1), apart.min(axis=1), apart.max(axis=1))
    return Band(*(each.to_numpy(float) for each in found))
