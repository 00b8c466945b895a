"""The page of a study, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cxr_study.page.html import template
from cxr_study.rows import Row
from cxr_study.studies import class_tests, subgroups
from cxr_study.studies.analysis import Analysis
from cxr_study.studies.data_file import StudyData
from cxr_study.studies.report import facts, findings, lines
from cxr_study.studies.report.captions import caption, notes
from cxr_study.studies.report.figures.bars import bars
from cxr_study.studies.report.figures.calibration import reliability_diagram
from cxr_study.studies.report.figures.classes import class_dots
from cxr_study.studies.report.figures.convergence import convergence
from cxr_study.studies.report.figures.drift import drift
from cxr_study.studies.report.figures.embedding import embedding
from cxr_study.studies.report.figures.factor import auroc_by_setting
from cxr_study.studies.report.figures.looks import settings
from cxr_study.studies.report.tables import Table
from cxr_study.studies.significance import CLASSES, SETTINGS
from cxr_study.studies.study_results import StudyResults


def page(analysis: Analysis, data: StudyData, tables: Sequence[Table], files: Sequence[str]) -> str:
    """Write the page, which needs nothing else.

    Args:
        analysis: Of the study.
        data: On which data.
        tables: Laid out as the papers'.
        files: Names of those beside it.
    """
    results = analysis.results
    shown = settings(results)
    last = shown[-1]
    tests = [test for test in results.study.tests if test in set(results.scores["test"])]
    return template(__package__).render(
        study=results.study,
        facts=facts.facts(results, data),
        notices=list(_notices(results, data)),
        judged=analysis.judged,
        told=findings.told,
        by_setting=auroc_by_setting(results, "by-setting"),
        averages=bars(results, _marks(analysis), "averages"),
        tables=tables,
        caption=caption,
        notes=notes,
        over_settings=lines.tested(analysis.tests, SETTINGS),
        over_classes=lines.tested(analysis.tests, CLASSES),
        by_patient=lines.by_patient(analysis.by_patient.differences),
        delong=class_tests.WARNING,
        dots=[
            (setting, [class_dots(results, setting, test, f"dots-{i}-{test}") for test in tests])
            for i, setting in enumerate(shown)
        ],
        kinds=lines.by_class_kind(results),
        fewest=subgroups.FEWEST,
        groups=lines.in_subgroups(subgroups.over_seeds(analysis.by_subgroup)),
        reliability=[
            reliability_diagram(results, last, test, f"reliability-{test}") for test in tests
        ],
        metrics=lines.measured(results),
        convergence=convergence(results, "convergence"),
        drift=drift(results, "drift"),
        embedding=embedding(results, last, "embedding"),
        files=files,
        made_with=facts.made_with(results),
    )


def _notices(results: StudyResults, data: StudyData) -> Iterator[str]:
    """What must be known before a number is believed."""
    if data.images is not None:
        yield facts.PHANTOM
    planned = {run.key for run in results.runs}
    if missing := len(planned) - len(results.results):
        yield f"{missing} of {len(planned)} runs are not finished; figures are of the others."
    if lacking := [test for test in results.study.tests if test not in set(results.scores["test"])]:
        yield f"Not tested on {', '.join(lacking)}: the data file does not have it."
    if len({run.seed for run in results.finished}) == 1:
        yield "One seed: there are no intervals over seeds, and no claim can be decided."


def _marks(analysis: Analysis) -> dict[tuple[Row, str], str]:
    """(row, test set) -> how it differs from surgical aggregation over the settings."""
    tests = analysis.tests
    if tests.empty:
        return {}
    chosen = tests[(tests["pairing"] == SETTINGS) & (tests["group"] == "all")]
    return {
        (Row(line["method"], line["strategy"]), line["test"]): line["mark"]
        for _, line in chosen.iterrows()
    }
