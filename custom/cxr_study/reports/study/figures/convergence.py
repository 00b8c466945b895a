"""How the validation BCE falls from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import matplotlib as mpl
import numpy as np

from cxr_study.reports.study.figures.looks import LOOK, marked, svg
from cxr_study.reports.study.figures.rounds import Band, draw, results_of
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.plan.run_folder import Result


def convergence(results: StudyResults, name: str) -> str | None:
    """Draw the mean validation BCE over rounds: a panel per setting, a line per row.

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
    bands = {key: _band(several) for key, several in found.items()}
    bands = {key: band for key, band in bands.items() if np.isfinite(band.mean).any()}
    if not bands:
        return None
    with mpl.rc_context(LOOK):
        figure, panel_of = draw(results, bands)
        for setting, row in bands:
            known = [each for each in found[setting, row] if each.best_round < len(each.losses)]
            best = [each.best_round for each in known]
            losses = np.array([each.losses[each.best_round] for each in known], float)
            panel_of[setting].plot(best, losses, **marked(row))
        next(iter(panel_of.values())).set_ylabel("validation BCE")
        return svg(figure, name, "Validation BCE over rounds, in each setting")


def _band(several: Sequence[Result]) -> Band:
    losses = np.array(list(zip_longest(*(each.losses for each in several))), float)
    return Band(losses.mean(axis=1), losses.min(axis=1), losses.max(axis=1))
