"""Everything that is computed of a study's results, and what the console shows of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_studies.analysis.across_folds import GROUPS
from cxr_studies.analysis.claim_checks import Judged, judge
from cxr_studies.analysis.patient_intervals import PatientIntervals, patient_intervals
from cxr_studies.analysis.significance import class_tests, significance
from cxr_studies.analysis.study_results import StudyResults, interval_columns
from cxr_studies.analysis.subgroups import subgroups
from cxr_studies.papers.claims import read_claims

_OF_RESULT = ("rounds", "best_round", "code", "sources", "machine")


@dataclass(frozen=True, eq=False)
class Analysis:
    """The results of a study with everything computed from them.

    Attributes:
        results: What the finished runs reach.
        tests: Paired tests of surgical aggregation against the other rows; see `significance`.
        by_patient: Bootstrap intervals of single runs; see `patient_intervals`.
        by_class: DeLong's tests, class by class; see `class_tests`.
        by_subgroup: AUROCs by sex, age and view; see `subgroups`.
        judged: The papers' claims about the study with their verdicts; see `judge`.
    """

    results: StudyResults
    tests: pd.DataFrame
    by_patient: PatientIntervals
    by_class: pd.DataFrame
    by_subgroup: pd.DataFrame
    judged: tuple[Judged, ...]


def analyse(results: StudyResults, processes: int) -> Analysis:
    """Compute everything that the report shows.

    Progress bars are shown on the terminal, as the bootstrap of new runs takes minutes.

    Args:
        results: See `gather`.
        processes: Number of processes that compute at the same time.
    """
    return Analysis(
        results,
        tests=significance(results),
        by_patient=patient_intervals(results, processes=processes),
        by_class=class_tests(results, processes=processes),
        by_subgroup=subgroups(results, processes=processes),
        judged=judge(read_claims(), results),
    )


def runs(results: StudyResults) -> pd.DataFrame:
    """All planned runs of a study; those that are not finished have no measurements.

    Returns:
        Columns scenario, method, strategy, seed, key, sites (JSON list), seconds (wall time),
        rounds, best_round, code, sources and machine; see `Result`.
    """
    return pd.DataFrame(
        {
            **run.facts,
            "key": run.key,
            "sites": json.dumps(run.where["sites"]),
            "seconds": None if result is None else round(result.seconds, 1),
            **{name: getattr(result, name, None) for name in _OF_RESULT},
        }
        for run in results.runs
        for result in [results.results.get(run.key)]
    )


def show(title: str, factor: str, seeds: pd.DataFrame, console: Console) -> None:
    """Print mean AUROCs over all classes with half their intervals over seeds; "-": not defined.

    Each scenario has its lines; a line names the model where sites have their own.

    Args:
        title: Of the study.
        factor: What varies from scenario to scenario.
        seeds: See `study_results.over_seeds`.
        console: Where the table is printed.
    """
    tests = list(dict.fromkeys(seeds["test"]))
    shown = seeds[seeds["group"] == "all"]
    keys = ["method", "strategy", *(["model"] if shown["model"].nunique() > 1 else [])]
    heading = f"{title}: mean AUROC ± half the 95 % interval over seeds"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    table = Table(box=None)
    table.add_column("method", min_width=16)  # else Rich hides it where the console is narrow
    for test in tests:
        table.add_column(test, no_wrap=True)
    for scenario, of_scenario in shown.groupby("scenario", sort=False):
        table.add_row(Text(f"{factor}: {scenario}", style="bold"))
        for named, rows in of_scenario.groupby(keys, sort=False):
            by_test = {each["test"]: _mean_text(each) for _, each in rows.iterrows()}
            table.add_row(", ".join(named), *(by_test.get(test, "") for test in tests))
    console.print(table)


def show_folds(title: str, folds: pd.DataFrame, console: Console) -> None:
    """Print means over folds with their 95 % intervals by patient; each scenario has its lines.

    Args:
        title: Of the study.
        folds: See `across_folds`, as read back from its csv: an empty `other_method` is NaN.
        console: Where the table is printed.
    """
    own = folds[folds["other_method"].isna() & folds["group"].isin(GROUPS)]
    groups, columns = list(dict.fromkeys(own["group"])), ["group", *interval_columns("auroc")]
    table = Table(title=f"{title}: mean AUROC over folds, 95 % interval by patient", box=None)
    for heading in ("method", *groups):
        table.add_column(heading)
    for scenario, of_scenario in own.groupby("scenario", sort=False):
        table.add_row(Text(str(scenario), style="bold"))
        for (method, strategy), lines in of_scenario.groupby(["method", "strategy"], sort=False):
            by_group = {
                group: f"{mean:.3f}" + ("" if np.isnan(low) else f"\n{low:.3f}-{high:.3f}")
                for group, mean, low, high in lines[columns].itertuples(index=False)
            }
            table.add_row(f"{method}, {strategy}", *(by_group.get(group, "") for group in groups))
    console.print(table)


def show_claims(results: StudyResults, console: Console) -> None:
    """Print the verdict on each of the papers' claims about the study, a line for each."""
    for each in judge(read_claims(), results):
        console.print(Text.assemble((each.verdict, "bold"), f": {each.claim.text}."))


def _mean_text(row: pd.Series) -> str:
    """Mean AUROC with half its interval, e.g. "0.853 ± 0.012"; "-" where it is not defined."""
    if np.isnan(row["auroc"]):
        return "-"
    half = row["auroc_high"] - row["auroc"]
    return f"{row['auroc']:.3f}" + ("" if np.isnan(half) else f" ± {half:.3f}")
