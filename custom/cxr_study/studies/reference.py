"""What the rows of a study are compared with, and which of a row's models count."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pandas as pd

from cxr_study.rows import Row
from cxr_study.studies.one_run import GLOBAL
from cxr_study.studies.run import Run


def reference(runs: Iterable[Run]) -> Row | None:
    """The row that all others are compared with: surgical aggregation.

    With FedBN+, as in the papers, where it is among the runs, else with the strategy that comes
    first; None where nothing is trained by surgical aggregation.
    """
    rows = dict.fromkeys(run.row for run in runs if run.row.method == "surgical")
    return max(rows, key=lambda row: row.strategy == "fedbn+", default=None)


def counts_on(models: Collection[str], test: str) -> str | None:
    """Which of a run's models is tested on a test set where rows are compared.

    The global one; where every site has its own, the one of the site whose test split it is. None
    where that is no site's, such as the test set of a data set that is cut into sites.
    """
    return next((model for model in (GLOBAL, test) if model in models), None)


def counted(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of `scores`, or of means of them, whose model counts; see `counts_on`."""
    return lines[(lines["model"] == GLOBAL) | (lines["model"] == lines["test"])]
