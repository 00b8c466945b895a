"""What a row reaches on a test set, be it with a global model or with models of the sites' own."""

from __future__ import annotations

from collections.abc import Collection

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.cells import Ours, measure
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.papers.published_results import OWN, Place


def models_tested(models: Collection[str], test: str) -> list[str]:
    """The models of a run that count on a test set, as in tables; see `cells.measure`.

    Where a site of that name has a model of its own, it is that one; otherwise all: the global one,
    or every site's.

    Args:
        models: "global", or sites that each have their own.
        test: Name of the test set.
    """
    return [test] if test in models else list(models)


def in_setting(results: StudyResults, row: Row, test: str, setting: str) -> Ours:
    """Mean AUROC over all classes in a setting, as tables have it."""
    return measure(results.means, Place(setting, row, OWN, test, "all"), "auroc", [setting])
