"""Writes a study's report: a page for people, LaTeX tables for a paper, all numbers as csv."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from cxr_study.common.files import replace
from cxr_study.jobs.methods import Row
from cxr_study.reports.study.facts import described
from cxr_study.reports.study.page import page
from cxr_study.reports.study.tables.latex import HEAD, latex
from cxr_study.reports.study.tables.tables import PValues, Table, tables
from cxr_study.studies.analysis import claim_checks, summary
from cxr_study.studies.analysis.analysis import analyse
from cxr_study.studies.analysis.significance import CLASSES, SCENARIOS
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.papers.published_results import AVERAGE, Place
from cxr_study.studies.plan.data_file import StudyData
from surgical_aggregation.site.training import tensorflow_setup

PAGE_FILE = "report.html"
LATEX_FILE = "tables.tex"
TABLES_FILE = "tables.csv"


def write(results: StudyResults, data: StudyData, folder: Path) -> Path:
    """Write all files into a folder, each in one step; returns the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    analysis = analyse(results, tensorflow_setup.cores())
    laid_out = tables(results, described(data), _p_values(analysis.tests))
    frames = {
        "runs.csv": summary.runs(results),
        "scores.csv": results.scores,
        "means.csv": results.means,
        "seeds.csv": results.seeds,
        "tests.csv": analysis.tests,
        "patients.csv": analysis.by_patient.means,
        "patient_differences.csv": analysis.by_patient.differences,
        "class_tests.csv": analysis.by_class.merge(analysis.by_patient.classes, how="left"),
        "subgroups.csv": analysis.by_subgroup,
        "claims.csv": claim_checks.table(analysis.judged),
    }
    for name, frame in {**frames, TABLES_FILE: cells(laid_out)}.items():
        replace(folder / name, frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    environments = [latex(table, results.study.name) for table in laid_out]
    replace(folder / LATEX_FILE, HEAD + "\n".join(environments))
    replace(folder / PAGE_FILE, page(analysis, data, laid_out, [LATEX_FILE, TABLES_FILE, *frames]))
    return folder / PAGE_FILE


def cells(laid_out: Iterable[Table]) -> pd.DataFrame:
    """A line for each cell of tables; see `Cell.values`."""
    return pd.DataFrame(
        {"table": table.name} | cell.values() for table in laid_out for cell in table.cells
    )


def _p_values(tests: pd.DataFrame) -> PValues:
    """Adjusted p of cells: over the classes of a scenario, over scenarios in the average."""
    if tests.empty:
        return {}
    chosen = tests[tests["pairing"].isin([SCENARIOS, CLASSES]) & tests["holm"].notna()]
    return {
        Place(
            line["scenario"] or AVERAGE,
            Row(line["method"], line["strategy"]),
            line["model"],
            line["test"],
            line["group"],
        ): float(line["holm"])
        for _, line in chosen.iterrows()
    }
