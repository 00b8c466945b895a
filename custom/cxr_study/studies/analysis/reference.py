"""What the rows of a study are compared with, and which of a row's models count."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pandas as pd

from cxr_study.jobs.methods import Row
from cxr_study.studies.papers.published_results import LOCAL
from cxr_study.studies.plan.data_file import DATA_SETS
from cxr_study.studies.plan.planned_run import Run
from cxr_study.studies.plan.run_folder import GLOBAL


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


def as_tables(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of `scores`, or of means of them, that tables have, with the models' names there.

    A global model is `GLOBAL`. Models that data sets have trained alone keep their names. All other
    models of sites are `LOCAL`: the one of the site whose test split it is; where that is no
    site's, there is a line for each of them.
    """
    own = lines["model"] == lines["test"]
    run = [lines[name] for name in ("scenario", "method", "strategy", "seed", "test")]
    alone = (lines["method"] == "individual") & lines["model"].isin(list(DATA_SETS))
    named = alone | (lines["model"] == GLOBAL)
    kept = lines[named | own | ~own.groupby(run).transform("any")]
    return kept.assign(model=kept["model"].where(named, LOCAL))
