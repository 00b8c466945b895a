"""Everything that is computed of a study's results, and what the console shows of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_studies.analysis.claim_checks import Judged, judge
from cxr_studies.analysis.patient_intervals import PatientIntervals, patient_intervals
from cxr_studies.analysis.significance import class_tests, significance
from cxr_studies.analysis.study_results import StudyResults, with_ends
from cxr_studies.analysis.subgroups import subgroups
from cxr_studies.papers.claims import read_claims
from cxr_studies.plan.row import Row
from cxr_study.common.progress import bar


@dataclass(frozen=True, eq=False)
class Analysis:
    """Results with what follows from them; see the functions that `analyse` calls."""

    results: StudyResults
    tests: pd.DataFrame
    by_patient: PatientIntervals
    by_class: pd.DataFrame
    by_subgroup: pd.DataFrame
    judged: tuple[Judged, ...]


def analyse(results: StudyResults, processes: int) -> Analysis:
    """Compute it all, in so many processes at the same time."""
    with bar("resampling patients") as report:
        by_patient = patient_intervals(results, processes=processes, report=report)
    with bar("testing classes") as report:
        by_class = class_tests(results, processes=processes, report=report)
    with bar("measuring subgroups") as report:
        by_subgroup = subgroups(results, processes=processes, report=report)
    judged = judge(read_claims(), results)
    return Analysis(results, significance(results), by_patient, by_class, by_subgroup, judged)


def runs(results: StudyResults) -> pd.DataFrame:
    """All runs of a study, the unfinished ones without figures.

    Returns:
        Columns scenario, method, strategy, seed, key, sites, seconds, rounds, best_round, code,
        sources and machine.
    """
    return pd.DataFrame(
        {
            **run.facts,
            "key": run.key,
            "sites": json.dumps(run.where["sites"]),
            "seconds": None if result is None else round(result.seconds, 1),
            "rounds": None if result is None else result.rounds,
            "best_round": None if result is None else result.best_round,
            "code": None if result is None else result.code,
            "sources": None if result is None else result.sources,
            "machine": None if result is None else result.machine,
        }
        for run in results.runs
        for result in [results.results.get(run.key)]
    )


def show(title: str, factor: str, seeds: pd.DataFrame, console: Console) -> None:
    """Print mean AUROCs over all classes with half their intervals over seeds; "-": not defined.

    Strategies are shown where there are several, and models where sites have their own.
    """
    tests = list(dict.fromkeys(seeds["test"]))
    shown = seeds[seeds["group"] == "all"]
    several = [column for column in ("strategy", "model") if shown[column].nunique() > 1]
    table = Table(title=f"{title}: mean AUROC ± half the 95 % interval over seeds", box=None)
    for heading in (factor, "method", *several, *tests):
        table.add_column(heading, no_wrap=heading in ("method", *tests))
    for keys, rows in shown.groupby(["scenario", "method", "strategy", "model"], sort=False):
        scenario, method, strategy, model = keys
        row = Row(method, strategy)
        beside = {"strategy": row.strategy_title, "model": model}
        by_test = {each["test"]: _told(each) for _, each in rows.iterrows()}
        words = scenario, row.title, *(beside[column] for column in several)
        table.add_row(*words, *(by_test.get(test, "") for test in tests))
    console.print(table)


def show_folds(title: str, folds: pd.DataFrame, console: Console) -> None:
    """Print means over folds with their intervals by patient; see `across_folds`."""
    own = folds[folds["other_method"].isna()]
    groups, columns = list(dict.fromkeys(own["group"])), ["group", *with_ends("auroc")]
    table = Table(title=f"{title}: mean AUROC over folds, 95 % interval by patient", box=None)
    for heading in ("method", *groups):
        table.add_column(heading)
    for (method, strategy), lines in own.groupby(["method", "strategy"], sort=False):
        by_group = {
            group: f"{mean:.3f}\n{low:.3f}-{high:.3f}"
            for group, mean, low, high in lines[columns].itertuples(index=False)
        }
        table.add_row(f"{method}, {strategy}", *(by_group.get(group, "") for group in groups))
    console.print(table)


def show_claims(results: StudyResults, console: Console) -> None:
    """Print what came out of each claim that the papers have about the study."""
    for each in judge(read_claims(), results):
        console.print(Text.assemble((each.verdict, "bold"), f": {each.claim.text}."))


def _told(row: pd.Series) -> str:
    if np.isnan(row["auroc"]):
        return "-"
    half = row["auroc_high"] - row["auroc"]
    return f"{row['auroc']:.3f}" + ("" if np.isnan(half) else f" ± {half:.3f}")
