"""What must be known before a number of a study's page is believed."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from cxr_study.common.wording import listed
from cxr_study.reports.study.facts import PHANTOM
from cxr_study.reports.study.tables.layouts import TESTS
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.analysis.subgroups import FEWEST, KINDS
from cxr_study.studies.plan.data_file import StudyData


def notices(results: StudyResults, data: StudyData) -> Iterator[str]:
    """Say it, one sentence or two at a time.

    Args:
        results: Of the study.
        data: On which data.
    """
    if data.images is not None:
        yield PHANTOM
    if part := ", ".join(_part(results)):
        yield f"A part of the study: {part}."
    planned = {run.key for run in results.runs}
    if missing := len(planned) - len(results.results):
        yield f"{missing} of {len(planned)} runs are not finished; figures are of the others."
    if lacking := [test for test in results.study.tests if test not in set(results.scores["test"])]:
        yield f"Not tested on {', '.join(lacking)}: the data file does not have it."
    if len({run.seed for run in results.finished}) == 1:
        yield (
            "One seed: there are no intervals over seeds, and no claim can be decided but that "
            "models are the same."
        )


def without_subgroups(found: pd.DataFrame) -> Iterator[str]:
    """Say which test sets have no subgroups of a kind, or none that can be compared.

    Args:
        found: As `subgroups.over_seeds` gives it.
    """
    if found.empty:
        return
    for test, here in found.groupby(found["test"].map(TESTS), sort=False):
        lacking = [kind for kind in KINDS if kind not in set(here["kind"])]
        if lacking:
            yield f"{test} does not tell {listed(lacking)}."
        compared = here.groupby("kind", sort=False)["compared"].max()
        if few := list(compared.index[compared == 0]):
            yield (
                f"{test}, by {listed(few)}: no class has {FEWEST} positives and {FEWEST} "
                "negatives in every subgroup."
            )


def _part(results: StudyResults) -> Iterator[str]:
    """What was to be run of the study's file, where that is less."""
    study = results.study
    settings = {run.setting for run in results.runs}
    named = [setting.name for setting in study.settings if setting.name in settings]
    rows = {run.row for run in results.runs}
    seeds = {run.seed for run in results.runs}
    for those, all_, what in (
        (len(named), len(study.settings), f"settings ({', '.join(named)})"),
        (len(rows), len(study.rows), "methods with their strategies"),
        (len(seeds), study.seeds, "seeds"),
    ):
        if those < all_:
            yield f"{those} of {all_} {what}"
