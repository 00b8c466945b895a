import pytest

from cxr_studies.papers.published_results import AVERAGE, Place
from cxr_studies.plan.row import Row
from cxr_studies.report.tables.layouts import Column
from study_tables import NIH, SURGICAL, mean, table

VANILLA = Row("vanilla", "fedbn+")
INDIVIDUAL = Row("individual", "fedavg")
ALONE = {"method": "individual", "strategy": "fedavg"}
FOUR, AVERAGED = Column("4", "nih", ("4",)), Column("average", "nih", ("2", "4"))
BCE = Column("BCE", "nih", ("2",), metric="bce")


def shown(made):
    """What stands in the cells, line by line."""
    return [[cell.shown for cell in line.cells] for line in made.lines]


def test_lines_are_rows_and_columns_are_as_asked_with_p_values_in_their_cells():
    made = table(
        mean(0.8),
        mean(0.6, method="vanilla"),
        mean(0.7, scenario="4"),
        mean(0.5, scenario="4", method="vanilla"),
        columns=(NIH, FOUR, AVERAGED, BCE),
        rows=(VANILLA, SURGICAL),
        p_values={
            Place("2", VANILLA, "global", "nih", "all"): 0.03,
            Place(AVERAGE, VANILLA, "global", "nih", "all"): 0.2,
        },
    )
    assert [line.heading for line in made.lines] == ["Vanilla FL", "Surgical aggregation"]
    assert shown(made) == [
        ["0.600 ± 0.100", "0.500 ± 0.100", "0.550 ± 0.071", "0.250"],
        ["0.800 ± 0.100", "0.700 ± 0.100", "0.750 ± 0.071", "0.250"],
    ]
    assert [cell.place.scenario for cell in made.lines[0].cells] == ["2", "4", AVERAGE, "2"]
    assert [cell.p for cell in made.cells] == [0.03, None, 0.2, None, *[None] * 4]


@pytest.mark.parametrize("other", [{"scenario": "9"}, {"test": "mimic"}])
def test_columns_and_rows_without_a_finished_run_are_left_out(other):
    vanilla = mean(0.7, method="vanilla", **other)  # finished elsewhere only
    made = table(mean(0.8), vanilla, columns=(FOUR, NIH), rows=(VANILLA, SURGICAL))
    assert made.columns == (NIH,) and [line.row for line in made.lines] == [SURGICAL]
    assert table(mean(0.8, **other)) is None


def test_a_column_of_dashes_stays():
    assert shown(table(mean(None))) == [["\N{EN DASH}"]]


def test_data_sets_that_trained_alone_have_a_line_each_and_parts_of_one_share_one():
    lines = [mean(0.8, model="nih-1", **ALONE), mean(0.6, model="nih-2", **ALONE)]
    made = table(*lines, rows=(INDIVIDUAL,))
    assert [line.heading for line in made.lines] == ["Individual"]
    assert shown(made) == [["0.700 ± 0.100"]]
    lines = [mean(0.8, model="nih", **ALONE), mean(0.6, model="chexpert", **ALONE)]
    p_values = {Place("2", INDIVIDUAL, "chexpert", "nih", "all"): 0.04}
    made = table(*lines, rows=(INDIVIDUAL,), p_values=p_values)
    assert [(line.heading, line.cells[0].p) for line in made.lines] == [
        ("Individual, NIH", None), ("Individual, CheXpert", 0.04),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ((0.8, 0.7), [True, False]),
        ((0.8001, 0.8004), [True, True]),
        ((0.8, None), [False, False]),
        ((0.8, 0.7, 0.9), [True, False, False]),  # "complete" has all labels
    ],
)
def test_the_best_of_several_as_shown_is_marked(values, best):
    methods = ("surgical", "vanilla", "complete")
    lines = [mean(value, method=method) for method, value in zip(methods, values, strict=False)]
    made = table(*lines, rows=[Row(method, "fedbn+") for method in methods])
    assert [line.cells[0].best for line in made.lines] == best


def test_the_best_bce_is_the_smallest():
    lines = [mean(0.8, bce=0.3), mean(0.8, bce=0.2, method="vanilla")]
    made = table(*lines, columns=(BCE,), rows=(SURGICAL, VANILLA))
    assert [line.cells[0].best for line in made.lines] == [False, True]
