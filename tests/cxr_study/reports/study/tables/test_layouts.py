import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.layouts import PAPERS
from cxr_study.studies.papers.published_results import of_study
from cxr_study.studies.plan.study_file import read_study

UNSAID = [Row(method, "") for method in ("individual", "complete", "centralised")]


@pytest.mark.parametrize("name", PAPERS)
def test_every_published_figure_of_the_source_has_a_cell(name):
    study, (source, layouts) = read_study(name), PAPERS[name]
    places = {
        (layout.name.removeprefix("table-"), column.place(row, model), column.metric)
        for layout in layouts
        for column in layout.columns
        for row in [*layout.rows(study.rows), *UNSAID]
        for model in ("global", "local", "nih", "chexpert")
    }
    metrics = ["auroc", "bce"] if name == "fedfbn" else ["auroc"]
    for line in of_study(study, source):
        for metric in metrics:
            assert (line.table, line.place, metric) in places
    scenarios = {scenario.name for scenario in study.scenarios}
    assert {column.scenarios[0] for each in layouts for column in each.columns} == scenarios
    assert len({layout.name for layout in layouts}) == len(layouts)
