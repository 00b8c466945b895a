import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.layouts import PAPERS, Layout, averages
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
        for model in ("global", "own", "nih", "chexpert")
    }
    metrics = ["auroc", "bce"] if name == "fedfbn" else ["auroc"]
    for line in of_study(study, source):
        for metric in metrics:
            assert (line.table, line.place, metric) in places


@pytest.mark.parametrize("name", PAPERS)
def test_names_differ_and_settings_are_the_studys(name):
    settings = {setting.name for setting in read_study(name).settings}
    layouts = PAPERS[name][1]
    assert len({layout.name for layout in layouts}) == len(layouts)
    assert {column.settings[0] for each in layouts for column in each.columns} == settings


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("clients", True),
        ("shared-classes", True),
        ("data-size", True),
        ("nih-chexpert", False),
        ("fedfbn", False),
    ],
)
def test_only_settings_that_cut_one_data_set_are_averaged(name, wanted):
    assert averages(read_study(name)) is wanted


def test_bce_stands_beside_auroc_below_the_test_set():
    [table] = [layout for layout in PAPERS["fedfbn"][1] if layout.name == "table-2a"]
    assert [(c.over, c.heading, c.metric) for c in table.columns] == [
        ("NIH, shared classes", "BCE", "bce"),
        ("NIH, shared classes", "AUROC", "auroc"),
    ]


def test_where_batch_norm_is_frozen_federations_with_another_are_left_out():
    rows = [
        Row("individual", "fedavg"),
        Row("personalised", "fedbn"),
        Row("surgical", "fedavg"),
        Row("surgical", "fedbn+"),
    ]
    assert Layout("x", "X", (), frozen=True).rows(rows) == [rows[0], rows[3]]
    assert Layout("x", "X", ()).rows(rows) == rows
