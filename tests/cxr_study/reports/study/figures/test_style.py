"""How methods and strategies look, the same in every figure."""

import itertools
import re
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from cxr_study.jobs.methods import HEAD_WEIGHTED, TITLES, Row
from cxr_study.reports.page import svg as page
from cxr_study.reports.study.figures import style
from surgical_aggregation.aggregation.strategy import STRATEGIES

SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Mass"]}


def test_every_method_has_a_colour_and_a_marker_of_its_own():
    assert set(style.METHODS) == set(TITLES)
    colours, markers = zip(*style.METHODS.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(TITLES)


def test_every_strategy_has_a_line_and_a_filling_of_its_own():
    every = {*STRATEGIES, *HEAD_WEIGHTED}
    assert set(style.STRATEGIES) == every
    for place in (0, 1, 2):
        assert len({each[place] for each in style.STRATEGIES.values()}) == len(every)


@pytest.mark.parametrize("method", TITLES)
def test_strategies_of_a_method_are_told_apart_by_line_and_by_marker_alone(method):
    rows = [Row(method, strategy) for strategy in STRATEGIES]
    for one, other in itertools.combinations(rows, 2):
        assert style.marked(one) != style.marked(other)
        assert style.lined(one)["linestyle"] != style.lined(other)["linestyle"]
        assert same_color(style.marked(one)["color"], style.lined(other)["color"])


def test_rows_and_scenarios_are_those_that_are_finished_in_the_files_order(made_up):
    made_up.plan("vanilla", scenario="4")
    made_up.plan("individual", scenario="8")
    for method, scenario in (("surgical", "4"), ("vanilla", "2")):
        made_up.finish({("global", "nih"): {"Edema": 0.9}}, method=method, scenario=scenario)
    results = made_up.results()
    assert style.rows(results) == [Row("vanilla", "fedbn+"), Row("surgical", "fedbn+")]
    assert style.scenarios(results) == ["2", "4"]


def test_a_row_is_named_with_its_strategy_beside_others_of_its_method_alone():
    one, other = Row("surgical", "fedavg"), Row("surgical", "fedbn+")
    assert style.row_name(one, [one, Row("vanilla", "fedbn+")]) == "Surgical aggregation"
    assert style.row_name(one, [one, other]) == "Surgical aggregation, fedavg"


@pytest.mark.parametrize(
    ("models", "test", "counts"),
    [
        (("global",), "nih", ["global"]),
        (("nih", "chexpert"), "nih", ["nih"]),
        (("nih", "chexpert"), "mimic", ["nih", "chexpert"]),
        (("nih-1", "nih-2"), "nih", ["nih-1", "nih-2"]),
    ],
)
def test_a_sites_own_model_counts_on_its_test_set_and_all_do_on_others(models, test, counts):
    assert style.models_tested(models, test) == counts


def test_the_mean_over_all_classes_is_that_of_the_models_that_count(made_up):
    row = Row("personalised", "fedbn+")
    made_up.finish(
        {
            ("nih", "nih"): {"Edema": 0.9, "Mass": 0.8},
            ("chexpert", "nih"): {"Edema": 0.5, "Mass": 0.5},
            ("nih", "mimic"): {"Edema": 0.9, "Mass": 0.7},
            ("chexpert", "mimic"): {"Edema": 0.6, "Mass": 0.6},
        },
        method="personalised",
        sites=SITES,
    )
    made_up.finish({("global", "nih"): {"Edema": 1.0, "Mass": 0.5}}, sites=SITES)
    results = made_up.results()
    assert style.in_scenario(results, row, "nih", "2").value == pytest.approx(0.85)
    assert style.in_scenario(results, row, "mimic", "2").value == pytest.approx(0.7)
    found = style.in_scenario(results, Row("surgical", "fedbn+"), "nih", "2")
    assert found.value == pytest.approx(0.75)
    assert style.in_scenario(results, row, "nih", "4").value is None


@pytest.mark.parametrize(("of", "chosen"), [(3, [0, 1, 2]), (101, [0, 25, 50, 75, 100])])
def test_of_many_as_many_as_asked_for_are_chosen_with_both_ends(of, chosen):
    assert style.evenly(of, 5).tolist() == chosen


def test_intervals_are_apart_in_one_path():
    axes = Figure().subplots()
    low, high = np.array([0.5, np.nan, 0.25]), np.array([0.75, np.nan, 1.0])
    style.intervals(axes, Row("vanilla", "fedbn+"), np.array([1, 3, 2]), low, high)
    [line] = axes.get_lines()
    at, over = line.get_xydata().T
    np.testing.assert_array_equal(over, [0.5, 0.75, np.nan, 0.25, 1.0, np.nan])
    np.testing.assert_array_equal(at, [1, 1, 1, 2, 2, 2])


class TestSvg:
    @pytest.fixture
    def figure(self):
        with mpl.rc_context(style.LOOK):
            figure = Figure((2, 2))
            axes = figure.subplots()
            axes.plot([0, 1 / 3, 1], [0, 1 / 7, 1], **style.marked(Row("vanilla", "fedbn+")))
            axes.plot([0, 1 / 3, 1], [1, 1 / 7, 0], **style.lined(Row("vanilla", "fedbn")))
            axes.set_title(' x="0.12345"')
            yield figure

    def test_places_are_to_a_tenth_of_a_point(self, figure):
        svg = style.svg(figure, "name", "Title")
        root = ElementTree.fromstring(svg)
        places = " ".join(
            value
            for each in root.iter()
            for key, value in each.attrib.items()
            if key in ("d", "x", "y", "transform")
        )
        assert re.search(r"\d\.\d\b", places) and not re.search(r"\.\d\d", places)
        assert "rotate(-0" not in svg

    def test_text_stays_what_it_is(self, figure):
        title = [e.text for e in ElementTree.fromstring(style.svg(figure, "name", "T")).iter()]
        assert ' x="0.12345"' in title

    def test_markers_that_look_alike_say_so_once(self, figure):
        whole = page.svg(figure, "name", "Title")
        small = style.svg(figure, "name", "Title")
        assert small.count("<use") == whole.count("<use") >= 3
        assert "#009e73" in small
        [group] = [e for e in ElementTree.fromstring(small).iter("g") if len(e.findall("use")) == 3]
        assert "fill: #009e73" in group.get("style")
        assert all(use.get("style") is None for use in group.findall("use"))

    def test_markers_that_differ_keep_their_looks(self):
        markers = '<use x="1" style="a"/>\n<use x="2" style="b"/>\n'
        found = re.fullmatch(r"<g([^>]*)>\n((?:<use [^>]*/>\n)+)</g>", f"<g>\n{markers}</g>")
        assert style._said_once(found) == f"<g>\n{markers}</g>"
