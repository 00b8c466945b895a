import itertools
import re
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from cxr_studies.plan import study_file
from cxr_studies.report.figures import style
from cxr_study.jobs.methods import TITLES, Row
from cxr_study.reports.page import drawing as page
from drawn_texts import legend
from surgical_aggregation.aggregation.strategy import STRATEGIES


def test_methods_differ_by_colour_and_marker_and_strategies_by_line_and_filling():
    assert set(style.METHODS) == set(TITLES)
    colours, markers = zip(*style.METHODS.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(TITLES)
    assert set(style.STRATEGIES) == set(STRATEGIES)
    for place in (0, 1, 2):
        assert len({str(each[place]) for each in style.STRATEGIES.values()}) == len(STRATEGIES)
    for method in TITLES:
        rows = [Row(method, strategy) for strategy in STRATEGIES]
        for one, other in itertools.combinations(rows, 2):
            assert style.marked(one) != style.marked(other)
            assert style.lined(one)["linestyle"] != style.lined(other)["linestyle"]
            assert same_color(style.marked(one)["color"], style.lined(other)["color"])


@pytest.mark.parametrize("study", study_file.shipped())
def test_the_variants_of_a_shipped_study_look_different(study):
    rows = [row for row in study_file.read_study(study).rows if row.method == "surgical"]
    assert {row.variant for row in rows if row.variant} <= set(style.VARIANTS)
    assert len({str((style.lined(row), style.marked(row))) for row in rows}) == len(rows)
    assert style.lined(Row("surgical", "fedbn+ own")) != style.lined(Row("surgical", "fedbn+"))


def test_rows_and_scenarios_are_those_that_are_finished_in_the_files_order(made_up):
    made_up.plan("vanilla", scenario="4")
    made_up.plan("individual", scenario="8")
    for method, scenario in (("surgical", "4"), ("vanilla", "2")):
        made_up.reach(0.9, method=method, scenario=scenario)
    results = made_up.results()
    assert style.rows(results) == [Row("vanilla", "fedbn+"), Row("surgical", "fedbn+")]
    assert style.scenarios(results) == ["2", "4"]


def test_a_legend_names_each_method_once_and_strategies_where_they_differ():
    rows = [Row("surgical", "fedavg"), Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")]
    methods = ["Surgical aggregation", "Vanilla FL"]
    strategies = ["fedavg: batch norm trained", "fedbn+: batch norm frozen"]
    made = [style.panels(["2"], shown, height=1)[0] for shown in (rows, rows[1:], ())]
    assert [legend(figure) for figure in made[:2]] == [methods + strategies, methods]
    assert not made[2].legends
    rows = [Row("surgical", "fedbn+"), Row("surgical", "fedbn+ refit")]
    figure, _ = style.panels(["2"], rows, height=1)
    assert legend(figure) == ["Surgical aggregation", "fedbn+, refit"]


def test_panels_are_as_high_as_asked_for_do_not_overlap_and_share_their_axes():
    titles = [str(number) for number in range(style.ACROSS + 1)]
    figure, every = style.panels(titles, (), height=1.5, below=0.8)
    style.label_below(figure, "sites")
    assert [axes.get_title(loc="left") for axes in every] == titles
    assert figure.axes == every
    boxes = [axes.get_position() for axes in every]
    tall = figure.get_figheight()
    assert [box.height * tall for box in boxes] == pytest.approx([1.5] * len(boxes))
    assert boxes[-1].y0 * tall == pytest.approx(0.8)
    assert boxes[0].y0 > boxes[-1].y1 and boxes[1].x0 > boxes[0].x1
    every[0].set(xlim=(0, 7), ylim=(0, 3))
    assert every[-1].get_xlim() == (0, 7) and every[-1].get_ylim() == (0, 3)
    assert all(axes.xaxis.get_tick_params()["labelbottom"] for axes in every)
    x, y = figure._supxlabel.get_position()  # of the axes, in the middle below them
    assert x == pytest.approx((boxes[0].x0 + boxes[2].x1) / 2) and 0 < y < boxes[-1].y0


def test_an_element_is_small_and_says_the_same():
    with mpl.rc_context(style.LOOK):
        figure = Figure((2, 2))
        axes = figure.subplots()
        axes.plot([0, 1 / 3, 1], [0, 1 / 7, 1], **style.marked(Row("vanilla", "fedbn+")))
        axes.plot([0, 1 / 3, 1], [1, 1 / 7, 0], **style.lined(Row("vanilla", "fedbn")))
        axes.set_title(' x="0.12345"')
        whole, small = page.svg(figure, "name", "Title"), style.svg(figure, "name", "Title")
    elements = list(ElementTree.fromstring(small).iter())
    numbers = [e.get(name, "") for e in elements for name in ("d", "x", "y", "transform")]
    places = " ".join(numbers)  # to a tenth of a point
    assert re.search(r"\d\.\d\b", places) and not re.search(r"\.\d\d", places)
    assert "rotate(-0" not in small and ' x="0.12345"' in [e.text for e in elements]
    assert small.count("<use") == whole.count("<use") >= 3
    [group] = [e for e in elements if e.tag == "g" and len(e.findall("use")) == 3]
    assert "fill: #009e73" in group.get("style")  # once for markers that look alike
    assert all(use.get("style") is None for use in group.findall("use"))


def test_markers_that_differ_keep_their_looks():
    markers = '<use x="1" style="a"/>\n<use x="2" style="b"/>\n'
    found = re.fullmatch(r"<g([^>]*)>\n((?:<use [^>]*/>\n)+)</g>", f"<g>\n{markers}</g>")
    assert style._said_once(found) == f"<g>\n{markers}</g>"
