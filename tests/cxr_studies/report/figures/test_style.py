import itertools

import pytest
from matplotlib.colors import same_color

from cxr_studies.plan import study_file
from cxr_studies.plan.row import TITLES, Row
from cxr_studies.report.figures import style
from drawn_texts import legend
from surgical_aggregation.aggregation.batch_norm_strategy import STRATEGIES


def test_methods_differ_by_colour_and_marker_and_strategies_by_line_and_filling():
    assert set(style.METHODS) == set(TITLES)
    colours, markers = zip(*style.METHODS.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(TITLES)
    assert set(style.STRATEGIES) == set(STRATEGIES)
    for place in (0, 1):
        assert len({str(each[place]) for each in style.STRATEGIES.values()}) == len(STRATEGIES)
    for method in TITLES:
        rows = [Row(method, strategy) for strategy in (*STRATEGIES, "silobn")]
        for one, other in itertools.combinations(rows, 2):
            assert style.marker_style(one) != style.marker_style(other)
            assert style.line_style(one)["linestyle"] != style.line_style(other)["linestyle"]
            assert same_color(style.marker_style(one)["color"], style.line_style(other)["color"])


@pytest.mark.parametrize("study", study_file.shipped())
def test_the_variants_of_a_shipped_study_look_different(study):
    rows = [row for row in study_file.read_study(study).rows if row.method == "surgical"]
    assert {row.variant for row in rows if row.variant} <= set(style.VARIANTS)
    assert len({str((style.line_style(row), style.marker_style(row))) for row in rows}) == len(rows)
    own, plain = (style.line_style(Row("surgical", how)) for how in ("fedbn+ own", "fedbn+"))
    assert own != plain


def test_rows_and_scenarios_are_those_that_are_finished_in_the_files_order(made_up):
    made_up.plan("vanilla", scenario="4")
    made_up.plan("individual", scenario="8")
    for method, scenario in (("surgical", "4"), ("vanilla", "2")):
        made_up.reach(0.9, method=method, scenario=scenario)
    results = made_up.results()
    assert style.rows(results) == [Row("vanilla", "fedbn+"), Row("surgical", "fedbn+")]
    assert style.scenarios(results) == ["2", "4"]


@pytest.mark.parametrize(("models", "counting"), [
    (["global"], ["global"]), (["nih", "server"], ["nih"]), (["a", "b", "server"], ["a", "b"]),
])  # fmt: skip
def test_the_servers_model_counts_with_none_of_the_sites(models, counting):
    assert style.models_tested(models, "nih") == counting


def test_a_legend_names_each_method_once_and_strategies_where_they_differ():
    rows = [Row("surgical", "fedavg"), Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")]
    methods = ["Surgical aggregation", "Vanilla FL"]
    strategies = ["batch norm averaged (fedavg)", "batch norm frozen (fedbn+)"]
    made = [style.panels(["2"], shown, height=1)[0] for shown in (rows, rows[1:], ())]
    assert [legend(figure) for figure in made[:2]] == [methods + strategies, methods]
    assert not made[2].legends
    rows = [Row("surgical", "silobn"), Row("surgical", "fedbn+")]
    figure, _ = style.panels(["2"], rows, height=1)
    assert legend(figure)[1:] == [strategies[1], "own strategy (silobn)"]
    rows = [Row("surgical", "fedbn+"), Row("surgical", "fedbn+ refit")]
    figure, _ = style.panels(["2"], rows, height=1)
    assert legend(figure) == ["Surgical aggregation", "batch norm frozen, refit"]


def test_panels_are_about_as_high_as_asked_for_do_not_overlap_and_share_their_axes():
    titles = [str(number) for number in range(style.ACROSS + 1)]
    figure, every = style.panels(titles, (), height=1.5, below="sites")
    figure.draw_without_rendering()
    assert [axes.get_title(loc="left") for axes in every] == titles
    assert figure.axes == every and figure.get_supxlabel() == "sites"
    boxes = [axes.get_position() for axes in every]
    tall = figure.get_figheight()
    assert [box.height * tall for box in boxes] == pytest.approx([1.5] * len(boxes), rel=0.15)
    assert boxes[0].y0 > boxes[-1].y1 and boxes[1].x0 > boxes[0].x1
    every[0].set(xlim=(0, 7), ylim=(0, 3))
    assert every[-1].get_xlim() == (0, 7) and every[-1].get_ylim() == (0, 3)
    assert all(axes.xaxis.get_tick_params()["labelbottom"] for axes in every)
