import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.layouts import Column
from cxr_study.studies.papers.published_results import AVERAGE, Place
from study_tables import NIH, SURGICAL, mean, table

VANILLA = Row("vanilla", "fedbn+")
INDIVIDUAL = Row("individual", "fedavg")
ALONE = {"method": "individual", "strategy": "fedavg"}
AVERAGED = Column("average", "nih", ("2", "4"))


def shown(made):
    """What stands in the cells, line by line."""
    return [[cell.shown for cell in line.cells] for line in made.lines]


class TestBuild:
    def test_lines_are_rows_and_columns_are_as_asked(self):
        made = table(
            mean(0.8),
            mean(0.6, method="vanilla"),
            mean(0.7, scenario="4"),
            mean(0.5, scenario="4", method="vanilla"),
            columns=(NIH, Column("4", "nih", ("4",)), AVERAGED),
            rows=(VANILLA, SURGICAL),
        )
        assert [line.heading for line in made.lines] == ["Vanilla FL", "Surgical aggregation"]
        assert shown(made) == [
            ["0.600 ± 0.100", "0.500 ± 0.100", "0.550 ± 0.071"],
            ["0.800 ± 0.100", "0.700 ± 0.100", "0.750 ± 0.071"],
        ]
        assert [cell.place.scenario for cell in made.lines[0].cells] == ["2", "4", AVERAGE]

    def test_columns_and_rows_without_a_finished_run_are_left_out(self):
        made = table(mean(0.8), columns=(Column("4", "nih", ("4",)), NIH), rows=(VANILLA, SURGICAL))
        assert made.columns == (NIH,) and [line.row for line in made.lines] == [SURGICAL]

    def test_a_row_that_is_finished_elsewhere_only_is_left_out(self):
        for other in ({"test": "mimic"}, {"scenario": "9"}):
            vanilla = mean(0.7, method="vanilla", **other)
            made = table(mean(0.8), vanilla, rows=(VANILLA, SURGICAL))
            assert [line.row for line in made.lines] == [SURGICAL]

    def test_a_column_of_dashes_stays(self):
        assert shown(table(mean(None))) == [["\N{EN DASH}"]]

    def test_without_a_finished_run_there_is_no_table(self):
        assert table(mean(0.8, scenario="9")) is None

    def test_columns_may_be_of_groups_and_of_bce(self):
        columns = (Column("BCE", "nih", ("2",), metric="bce"), Column("x", "nih", ("2",), "shared"))
        made = table(mean(0.8), mean(0.9, group="shared"), columns=columns)
        assert shown(made) == [["0.250", "0.900 ± 0.100"]]


def test_parts_of_a_data_set_that_trained_alone_have_one_line():
    lines = [mean(0.8, model="nih-1", **ALONE), mean(0.6, model="nih-2", **ALONE)]
    made = table(*lines, rows=(INDIVIDUAL,))
    assert [line.heading for line in made.lines] == ["Individual"]
    assert shown(made) == [["0.700 ± 0.100"]]


class TestPValues:
    def test_it_stands_in_the_cell_of_its_row(self):
        p_values = {
            Place("2", VANILLA, "global", "nih", "all"): 0.03,
            Place(AVERAGE, VANILLA, "global", "nih", "all"): 0.2,
        }
        made = table(
            mean(0.8),
            mean(0.6, method="vanilla"),
            mean(0.6, method="vanilla", scenario="4"),
            columns=(NIH, AVERAGED, Column("BCE", "nih", ("2",), metric="bce")),
            rows=(SURGICAL, VANILLA),
            p_values=p_values,
        )
        assert [[cell.p for cell in line.cells] for line in made.lines] == [
            [None, None, None],
            [0.03, 0.2, None],
        ]

    def test_models_of_a_row_have_their_own(self):
        made = table(
            mean(0.8, model="nih", **ALONE),
            mean(0.6, model="chexpert", **ALONE),
            rows=(INDIVIDUAL,),
            p_values={
                Place("2", INDIVIDUAL, "nih", "nih", "all"): 0.03,
                Place("2", INDIVIDUAL, "chexpert", "nih", "all"): 0.04,
            },
        )
        assert [line.cells[0].p for line in made.lines] == [0.03, 0.04]


class TestBest:
    @pytest.mark.parametrize(
        ("values", "best"),
        [
            ((0.8, 0.7), [True, False]),
            ((0.8001, 0.8004), [True, True]),
            ((0.8, None), [False, False]),
            ((None, None), [False, False]),
        ],
    )
    def test_the_best_of_several_as_shown(self, values, best):
        first, second = values
        made = table(mean(first), mean(second, method="vanilla"), rows=(SURGICAL, VANILLA))
        assert [line.cells[0].best for line in made.lines] == best

    def test_of_bce_the_smallest_is_the_best(self):
        made = table(
            mean(0.8, bce=0.3),
            mean(0.8, bce=0.2, method="vanilla"),
            columns=(Column("BCE", "nih", ("2",), metric="bce"),),
            rows=(SURGICAL, VANILLA),
        )
        assert [line.cells[0].best for line in made.lines] == [False, True]

    def test_who_has_all_labels_does_not_compete(self):
        made = table(
            mean(0.8),
            mean(0.7, method="vanilla"),
            mean(0.9, method="complete"),
            rows=(SURGICAL, VANILLA, Row("complete", "fedbn+")),
        )
        assert [line.cells[0].best for line in made.lines] == [True, False, False]
