import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.layouts import PAPERS, Column, Layout, averages, classes
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


@pytest.mark.parametrize(
    ("names", "wanted"),
    [(("clients", "shared-classes", "data-size"), True), (("nih-chexpert", "fedfbn"), False)],
)
def test_only_scenarios_that_cut_one_data_set_are_averaged(names, wanted):
    assert {averages(read_study(name)) for name in names} == {wanted}


@pytest.mark.parametrize(
    ("test", "group", "called"),
    [
        ("nih", "all", "NIH"),
        ("nih", "unique", "NIH, unique classes"),
        ("mimic", "chexpert", "MIMIC, classes of CheXpert"),
        ("nih", "nih-1", "NIH, classes of nih-1"),
    ],
)
def test_a_test_set_is_called_by_its_group_of_classes(test, group, called):
    assert classes(test, group) == called


def test_headings_that_neighbours_share_are_spans():
    columns = tuple(Column("a", "nih", ("2",), over=over) for over in ("X", "X", "", "X"))
    assert Layout("x", "X", columns).spans == (("X", 2), ("", 1), ("X", 1))
    assert Layout("x", "X", columns[2:3]).spans == ()
