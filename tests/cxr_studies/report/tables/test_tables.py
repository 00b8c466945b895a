from dataclasses import astuple

import pytest
from scipy import stats

from cxr_studies.papers.published_results import AVERAGE, Place
from cxr_studies.plan.row import Row
from cxr_studies.report.tables.layouts import Column
from cxr_studies.report.tables.tables import Cell, Ours, measure
from study_tables import NIH, SURGICAL, mean, means, published, table

PLACE = Place("2", SURGICAL, "global", "nih", "all")
AVERAGED = Place(AVERAGE, SURGICAL, "global", "nih", "all")
PERSONALISED = Row("personalised", "fedbn")
MINUS = "\N{MINUS SIGN}"


def own(auroc, model, **more):
    """A line of a site's local model."""
    return mean(auroc, model=model, method="personalised", strategy="fedbn", **more)


def place(test="nih", model="local", scenario="2"):
    return Place(scenario, PERSONALISED, model, test, "all")


def reached(lines, of=PLACE, metric="auroc"):
    """The facts of what runs reach."""
    scenarios = ("2", "4") if of.scenario == AVERAGE else ("2",)
    return astuple(measure(means(*lines), of, metric, scenarios))


def test_the_interval_is_over_seeds_and_the_sd_of_an_average_over_scenarios():
    values = [0.7, 0.8, 0.75]
    figures = enumerate(zip(values, [0.1, 0.2, 0.12], [14, 13, 14], strict=True))
    lines = [mean(v, auroc_sd=sd, seed=seed, classes=n) for seed, (v, sd, n) in figures]
    low, high = stats.t.interval(0.95, 2, loc=0.75, scale=stats.sem(values))
    assert reached(lines) == pytest.approx((3, 3, 0.75, 0.14, low, high, 13))
    every = [(0.7, "2", 0), (0.9, "4", 0), (0.6, "2", 1), (0.8, "4", 1)]
    lines = [mean(auroc, scenario=scenario, seed=seed) for auroc, scenario, seed in every]
    low, high = stats.t.interval(0.95, 1, loc=0.75, scale=stats.sem([0.8, 0.7]))
    assert reached(lines, AVERAGED) == pytest.approx((2, 2, 0.75, 0.02**0.5, low, high, 14))


@pytest.mark.parametrize("other", [
    {"scenario": "3"}, {"method": "vanilla"}, {"strategy": "fedavg"}, {"model": "nih"},
    {"test": "mimic"}, {"group": "shared"},
])  # fmt: skip
def test_what_is_of_another_place_is_not_in_a_mean(other):
    assert reached([mean(0.7), mean(0.1, **other)])[:3] == (1, 1, 0.7)
    assert reached([mean(0.1, **other)]) == (0, 0, None, None, None, None, 0)


@pytest.mark.parametrize(("lines", "of", "runs", "seeds", "value", "sd", "classes"), [
    # One seed has no interval, a single class no SD; what is not defined has no value.
    ([mean(0.7)], PLACE, 1, 1, 0.7, 0.1, 14),
    ([mean(0.7, auroc_sd=None)], PLACE, 1, 1, 0.7, None, 14),
    ([mean(None)], PLACE, 1, 0, None, None, 0),
    # A seed that does not define it is left out.
    ([mean(0.7), mean(None, seed=1)], PLACE, 2, 1, 0.7, 0.1, 14),
    # A local model is measured on its site's test set, whatever class it does not have ...
    ([own(0.8, "nih"), own(0.3, "chexpert")], place(), 1, 1, 0.8, 0.1, 14),
    ([own(None, "nih"), own(0.3, "chexpert")], place(), 1, 0, None, None, 0),
    # ... and elsewhere it is the mean over the models that have the classes.
    ([own(0.8, "nih", test="mimic"), own(None, "third", test="mimic"),
      own(0.6, "chexpert", test="mimic", auroc_sd=0.3)], place("mimic"), 1, 1, 0.7, 0.2, 14),
    # The server's model is none of the sites'.
    ([own(0.8, "nih", test="mimic"), own(0.2, "server", test="mimic")], place("mimic"), 1, 1, 0.8,
     0.1, 14),
    ([own(0.8, "nih"), own(0.2, "server")], place(model="server"), 1, 1, 0.2, 0.1, 14),
    # A named model is measured on every test set.
    ([own(0.8, "nih"), own(0.3, "third")], place(model="third"), 1, 1, 0.3, 0.1, 14),
    # Each scenario of an average has its own sites.
    ([own(0.8, "nih"), own(0.2, "chexpert"), own(0.5, "nih-1", scenario="4"),
      own(0.7, "nih-2", scenario="4")], place(scenario=AVERAGE), 1, 1, 0.7, 0.02**0.5, 14),
    # In an average a seed counts that is finished and defined in all scenarios.
    ([mean(0.7), mean(0.9, scenario="4"), mean(0.1, seed=1, classes=9)], AVERAGED, 1, 1, 0.8,
     0.02**0.5, 14),
    ([mean(0.7), mean(None, scenario="4")], AVERAGED, 1, 0, None, None, 0),
])  # fmt: skip
def test_what_counts(lines, of, runs, seeds, value, sd, classes):
    assert reached(lines, of) == pytest.approx((runs, seeds, value, sd, None, None, classes))


def test_bce_has_no_sd():
    found = reached([mean(0.7, bce=0.2), mean(0.7, bce=0.3, seed=1)], metric="bce")
    assert found[2:4] == (0.25, None)


def cell(ours=(1, 1, 0.8123, 0.0601, None, None, 14), theirs=None, metric="auroc", **more):
    return Cell(PLACE, metric, Ours(*ours), theirs, **more)


UNDEFINED, UNFINISHED = (1, 0, *[None] * 4, 0), (0, 0, *[None] * 4, 0)
WITH_BCE = published(sd=0.07, low=0.81, high=0.83, bce=0.15)


@pytest.mark.parametrize(("made", "shown", "ends", "theirs", "difference"), [
    (cell(), "0.812 ± 0.060", "", "", ""),
    (cell((2, 2, 0.8, 0.1, 0.7504, 0.85, 14)), "0.800 ± 0.100", "0.750 to 0.850", "", ""),
    (cell(UNDEFINED, published()), "\N{EN DASH}", "", "0.82", ""),
    (cell(UNFINISHED), "", "", "", ""),
    (cell(theirs=published(sd=0.07)), "0.812 ± 0.060", "", "0.82 ± 0.07", MINUS + "0.01"),
    (cell(theirs=WITH_BCE), "0.812 ± 0.060", "", "0.82 (0.81 to 0.83)", MINUS + "0.01"),
    (cell(theirs=WITH_BCE, metric="bce"), "0.812 ± 0.060", "", "0.15", "+0.66"),
    (cell(theirs=published(), metric="bce"), "0.812 ± 0.060", "", "", ""),
    # Theirs is over another number of classes.
    (cell(theirs=published(classes=13)), "0.812 ± 0.060", "", "0.82", ""),
    # Ours is of other data, such as drawings.
    (cell(theirs=published(sd=0.07), apart=("why",)), "0.812 ± 0.060", "", "0.82 ± 0.07", ""),
    # A difference has their two decimals, and none is written as less than nothing.
    (cell((1, 1, 0.8449, None, None, None, 14), published()), "0.845", "", "0.82", "+0.02"),
    (cell((1, 1, 0.8185, None, None, None, 14), published()), "0.819", "", "0.82", "+0.00"),
    (cell((1, 1, 0.8215, None, None, None, 14), published()), "0.822", "", "0.82", "+0.00"),
])  # fmt: skip
def test_ours_and_theirs_are_shown_with_their_difference(made, shown, ends, theirs, difference):
    assert (made.shown, made.interval_shown, made.published_shown) == (shown, ends, theirs)
    assert made.difference_shown == difference
    assert (made.difference is None) == (difference == "")


@pytest.mark.parametrize(("theirs", "shown"), [
    ({"mark": "**"}, "**"), ({"mark": "ns"}, "ns"), ({"p": "<0.001"}, "p < 0.001"),
    ({"p": "0.44"}, "p = 0.44"), ({}, ""),
])  # fmt: skip
def test_their_mark_or_p_is_shown_as_printed_with_auroc_alone(theirs, shown):
    theirs = published(bce=0.15, **theirs)
    assert cell(theirs=theirs).published_mark == shown
    assert cell(theirs=theirs, metric="bce").published_mark == "" == cell().published_mark


def test_values_are_ours_and_theirs_side_by_side():
    theirs = published(0.82, sd=0.07, low=0.81, high=0.83, mark="**")
    made = cell((2, 2, 0.81237, 0.1, 0.81, 0.82, 14), theirs, p=0.04)
    assert made.significance_mark == "*" and made.values() == {
        "scenario": "2", "method": "surgical", "strategy": "fedbn+",
        "model": "global", "test": "nih", "group": "all", "metric": "auroc",
        "runs": 2, "seeds": 2, "value": 0.81237, "sd": 0.1, "low": 0.81, "high": 0.82,
        "classes": 14,
        "published": 0.82, "published_sd": 0.07, "published_low": 0.81, "published_high": 0.83,
        "published_classes": 14, "published_mark": "**", "published_p": None,
        "source": "ML4H 2024, Table 2",
        "difference": pytest.approx(-0.00763), "holm": 0.04, "mark": "*", "best": False,
    }  # fmt: skip
    found = cell(UNDEFINED).values()
    assert (found["value"], found["runs"]) == (None, 1)
    assert found["published"] is found["source"] is found["difference"] is found["mark"] is None
    # The published SD and interval are those of AUROC.
    found = cell(theirs=WITH_BCE, metric="bce").values()
    assert (found["published"], found["published_classes"]) == (0.15, 14)
    assert found["published_sd"] is found["published_low"] is None


VANILLA = Row("vanilla", "fedbn+")
INDIVIDUAL = Row("individual", "fedavg")
ALONE = {"method": "individual", "strategy": "fedavg"}
FOUR, MEAN_OF_BOTH = Column("4", "nih", ("4",)), Column("average", "nih", ("2", "4"))
BCE = Column("BCE", "nih", ("2",), metric="bce")


def shown(made):
    """What stands in the cells, line by line."""
    return [[cell.shown for cell in line.cells] for line in made.lines]


def test_lines_are_rows_and_columns_are_as_asked_with_p_values_in_their_cells():
    lines = [mean(0.8), mean(0.6, method="vanilla"), mean(0.7, scenario="4")]
    lines.append(mean(0.5, scenario="4", method="vanilla"))
    p_of = {"2": 0.03, AVERAGE: 0.2}
    p_values = {Place(of, VANILLA, "global", "nih", "all"): p for of, p in p_of.items()}
    of = {"columns": (NIH, FOUR, MEAN_OF_BOTH, BCE), "rows": (VANILLA, SURGICAL)}
    made = table(*lines, **of, p_values=p_values)
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


@pytest.mark.parametrize(("values", "best"), [
    ((0.8, 0.7), [True, False]), ((0.8001, 0.8004), [True, True]), ((0.8, None), [False, False]),
    ((0.8, 0.7, 0.9), [True, False, False]),  # "complete" has all labels
])  # fmt: skip
def test_the_best_of_several_as_shown_is_marked(values, best):
    methods = ("surgical", "vanilla", "complete")
    lines = [mean(value, method=method) for method, value in zip(methods, values, strict=False)]
    made = table(*lines, rows=[Row(method, "fedbn+") for method in methods])
    assert [line.cells[0].best for line in made.lines] == best


def test_the_best_bce_is_the_smallest():
    lines = [mean(0.8, bce=0.3), mean(0.8, bce=0.2, method="vanilla")]
    made = table(*lines, columns=(BCE,), rows=(SURGICAL, VANILLA))
    assert [line.cells[0].best for line in made.lines] == [False, True]
