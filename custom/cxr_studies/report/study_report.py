"""Writes a study's report: a page, LaTeX tables for a paper, and all numbers as csv."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from cxr_studies.analysis import claim_checks, subgroups
from cxr_studies.analysis.across_folds import across_folds
from cxr_studies.analysis.analysis import Analysis, analyse, runs
from cxr_studies.analysis.significance import CLASSES, DELONG_WARNING, SCENARIOS
from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.papers.published_data import DataUse
from cxr_studies.papers.published_results import AVERAGE, LOCAL, Place
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import GLOBAL
from cxr_studies.report import facts
from cxr_studies.report.figures.aurocs import auroc_by_scenario, bars, class_dots
from cxr_studies.report.figures.folds import fold_differences
from cxr_studies.report.figures.predicted import MOST, embedding, reliability_diagram
from cxr_studies.report.figures.rounds import convergence, drift, learning
from cxr_studies.report.figures.style import scenarios
from cxr_studies.report.tables import latex, plain_tables
from cxr_studies.report.tables.layouts import averages
from cxr_studies.report.tables.tables import PValues, Table, tables
from cxr_study.common.files import atomic_write
from cxr_study.evaluation.subgroup_scores import FEWEST
from cxr_study.jobs.methods import BATCH_NORM
from cxr_study.reports.page.html import template
from surgical_aggregation.site.training import tensorflow_setup

PAGE_FILE = "report.html"
PROVENANCE_FILE = "provenance.json"
LATEX_FILE = "tables.tex"
TABLES_FILE = "tables.csv"


def write(
    results: StudyResults,
    data: StudyData,
    folder: Path,
    data_use: Mapping[str, DataUse],
    command: str = "",
) -> Path:
    """Write all files of the report into a folder, each atomically.

    Args:
        results: Of the study.
        data: On which it ran.
        folder: Of the report; created where it does not exist.
        data_use: Data set -> how it is used; see `published_data`.
        command: By which it was made, for `PROVENANCE_FILE`.

    Returns:
        Path of the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cores = tensorflow_setup.cores()
    analysis = analyse(results, cores)
    real = None if data.images is not None else data_use
    laid_out = tables(results, facts.describe_data(data), _p_values(analysis.tests), data_use=real)
    cells = [{"table": table.name} | cell.values() for table in laid_out for cell in table.cells]
    folds = across_folds(results, data.folds, processes=cores) if data.folds else None
    frames = {
        "runs.csv": runs(results),
        "scores.csv": results.scores,
        "means.csv": results.means,
        "seeds.csv": results.seeds,
        "tests.csv": analysis.tests,
        "patients.csv": analysis.by_patient.means,
        "patient_differences.csv": analysis.by_patient.differences,
        "class_tests.csv": analysis.by_class.merge(analysis.by_patient.classes, how="left"),
        "subgroups.csv": analysis.by_subgroup,
        "claims.csv": claim_checks.table(analysis.judged),
        **({} if folds is None else {"folds.csv": folds}),
    }
    for name, frame in {**frames, TABLES_FILE: pd.DataFrame(cells)}.items():
        atomic_write(
            folder / name, frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        )
    environments = [latex.latex(table, results.study.name) for table in laid_out]
    atomic_write(folder / LATEX_FILE, latex.HEAD + "\n".join(environments))
    made = {
        "Command": command,
        **facts.report_header(results, data),
        "Made with": facts.package_versions(results),
    }
    atomic_write(folder / PROVENANCE_FILE, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    files = [LATEX_FILE, TABLES_FILE, PROVENANCE_FILE, *frames]
    atomic_write(folder / PAGE_FILE, page(analysis, data, laid_out, files, folds))
    return folder / PAGE_FILE


def _p_values(tests: pd.DataFrame) -> PValues:
    """Adjusted p of cells: over the classes of a scenario, over scenarios in the average."""
    return {
        Place(
            line["scenario"] or AVERAGE,
            Row(line["method"], line["strategy"]),
            line["model"],
            line["test"],
            line["group"],
        ): line["holm"]
        for line in tests.to_dict("records")
        if line["pairing"] in (SCENARIOS, CLASSES) and pd.notna(line["holm"])
    }


def page(
    analysis: Analysis,
    data: StudyData,
    laid_out: Sequence[Table],
    files: Sequence[str],
    folds: pd.DataFrame | None = None,
) -> str:
    """The page as HTML, which loads no other file.

    Args:
        analysis: Everything that is computed of the study.
        data: On which it ran.
        laid_out: The tables.
        files: Names of the other files in the report's folder, which the page lists.
        folds: See `across_folds`; None where the data have no folds.
    """
    results = analysis.results
    shown = scenarios(results)
    last = shown[-1]
    over_scenarios = analysis.tests["pairing"] == SCENARIOS
    several = averages(results.study) and analysis.tests.loc[over_scenarios, "p"].notna().any()
    tests = [test for test in results.study.tests if test in set(results.scores["test"])]
    return template(__package__).render(
        analysis=analysis,
        results=results,
        study=results.study,
        data=data,
        texts=facts,
        batch_norm=BATCH_NORM,
        latex=latex,
        plain=plain_tables,
        by_scenario=auroc_by_scenario(results, "by-scenario"),
        bars=list(_bars(analysis, shown)),
        folds=[]
        if folds is None
        else [
            (scenario, fold_differences(results, folds, scenario, f"folds-{number}"))
            for number, scenario in enumerate(shown)
        ],
        tables=laid_out,
        over_scenarios=plain_tables.tested(analysis.tests, SCENARIOS) if several else None,
        over_classes=plain_tables.tested(analysis.tests, CLASSES),
        delong=DELONG_WARNING,
        dots=[
            (scenario, [class_dots(results, scenario, test, f"dots-{i}-{test}") for test in tests])
            for i, scenario in enumerate(shown)
        ],
        fewest=FEWEST,
        by_subgroup=subgroups.over_seeds(analysis.by_subgroup),
        reliability=[
            reliability_diagram(results, last, test, f"reliability-{test}") for test in tests
        ],
        last=last,
        most=MOST,
        rounds=[each(results, each.__name__) for each in (convergence, learning, drift)],
        embedding=embedding(results, last, "embedding"),
        files=files,
    )


def _bars(analysis: Analysis, shown: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Bar charts with headings: of the average over scenarios, or of each where there is none."""
    results, tests = analysis.results, analysis.tests
    if averages(results.study):
        yield "", bars(results, shown, _marks(tests, SCENARIOS, ""), "averages")
        return
    for number, scenario in enumerate(shown):
        marks = _marks(tests, CLASSES, scenario)
        heading = f"{results.study.factor}: {scenario}"
        yield heading, bars(results, [scenario], marks, f"bars-{number}")


def _marks(tests: pd.DataFrame, pairing: str, scenario: str) -> dict[tuple[Row, str], str]:
    """(row, test set) -> mark of its difference to surgical aggregation there."""
    return {
        (Row(line["method"], line["strategy"]), line["test"]): line["mark"]
        for line in tests.to_dict("records")
        if (line["pairing"], line["scenario"], line["group"]) == (pairing, scenario, "all")
        and line["model"] in (GLOBAL, LOCAL, line["test"])
    }
